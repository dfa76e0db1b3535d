// Runs before the rest, and apart from it: a page one of whose files did not arrive says so, and is loaded again.

(() => {
  const KEY = 'longboat.boot';
  const MOST = 4;

  const tries = () => {
    try {
      return Number(sessionStorage.getItem(KEY)) || 0;
    } catch {
      return MOST; // who cannot count must not go round in circles
    }
  };

  const count = (number) => {
    try {
      if (number) sessionStorage.setItem(KEY, String(number));
      else sessionStorage.removeItem(KEY);
    } catch {
      // told above
    }
  };

  let isBroken = false;

  function broken() {
    if (isBroken) return;
    isBroken = true;
    const before = tries();
    const again = before < MOST;
    if (again) setTimeout(() => location.reload(), 500 * 2 ** before);
    count(again ? before + 1 : 0);
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = 'Load it again';
    button.addEventListener('click', () => location.reload());
    const words = document.createElement('p');
    words.setAttribute('role', 'alert');
    words.textContent = `A part of this page did not arrive. ${again ? 'Trying again…' : 'The server may be away.'}`;
    const told = document.createElement('div');
    told.className = 'welcome';
    told.append(words, button);
    document.getElementById('main')?.replaceChildren(told);
  }

  addEventListener(
    'error',
    ({ target }) => {
      if (!(target instanceof HTMLScriptElement)) return;
      if (document.readyState === 'loading') addEventListener('DOMContentLoaded', broken);
      else broken();
    },
    true,
  );
  // A file of another version than the rest: its error is the window's. What goes wrong later is not ours.
  const mixed = ({ target }) => target === window && broken();
  addEventListener('error', mixed);
  addEventListener('longboat-started', () => {
    removeEventListener('error', mixed);
    count(0);
  });
})();
