// Runs first and on its own: if a file of the page fails to load, says so and reloads.

(() => {
  const KEY = 'longboat.boot';
  const MOST = 4;

  const tries = () => {
    try {
      return Number(sessionStorage.getItem(KEY)) || 0;
    } catch {
      return MOST; // without a counter it could reload forever
    }
  };

  const count = (number) => {
    try {
      if (number) sessionStorage.setItem(KEY, String(number));
      else sessionStorage.removeItem(KEY);
    } catch {
      // storage is unavailable: see above
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
    button.textContent = 'Reload';
    button.addEventListener('click', () => location.reload());
    const words = document.createElement('p');
    words.setAttribute('role', 'alert');
    words.textContent = `Part of this page did not load. ${again ? 'Retrying…' : 'The server may be down.'}`;
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
  // Files of different versions raise an error on the window. Errors after the start are not our concern.
  const mixed = ({ target }) => target === window && broken();
  addEventListener('error', mixed);
  addEventListener('longboat-started', () => {
    removeEventListener('error', mixed);
    count(0);
  });
})();
