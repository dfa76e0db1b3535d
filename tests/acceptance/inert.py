"""How tests see that whatever others wrote is text on the page: nothing of it became an element or ran (F3)."""

from browser import Tab

# Nothing but what the page makes itself: no element or attribute that came with a text.
INERT = """() => {
  const found = [];
  const never = new Set(['SCRIPT', 'IFRAME', 'OBJECT', 'EMBED', 'BASE', 'META', 'LINK', 'STYLE', 'FRAME', 'FRAMESET',
    'AUDIO', 'VIDEO', 'SOURCE', 'TRACK', 'PICTURE', 'MARQUEE', 'TEMPLATE', 'SLOT', 'MATH', 'FOREIGNOBJECT', 'USE',
    'ANIMATE', 'IMAGE', 'PORTAL', 'APPLET', 'XSS', 'ISINDEX', 'KEYGEN']);
  const plain = '.said, .thoughts, pre.output, .command, .queued-text, .session-title, .title, .tool-name, .tool-about,'
    + ' .todos li span, .ask h2, .ask .choice span, .who, .workspace-name, .path, dd, .toast p, .notice strong,'
    + ' .ask mark, .ask .parts code, .ask .rules code, .answering .effect, .tool-said,'
    + ' .palette-label, .offered li, .answer span';
  for (const node of document.querySelectorAll('body *')) {
    const told = node.outerHTML.slice(0, 200);
    if (never.has(node.tagName.toUpperCase())) found.push(told);
    for (const { name, value } of node.attributes) {
      if (name.startsWith('on') || ['srcdoc', 'srcset', 'formaction', 'ping', 'background', 'poster', 'autofocus',
        'contenteditable', 'popover', 'is'].includes(name)) found.push(`${name}: ${told}`);
      if (/^\\s*(?:javascript|vbscript|data:(?!image\\/(?:png|jpeg|gif|webp);base64,))/i.test(value)
        && ['href', 'src', 'action', 'xlink:href', 'data'].includes(name)) found.push(`${name}: ${told}`);
      if (name === 'style') found.push(`style: ${told}`);
    }
    if (node.matches('img') && !/^data:image\\/(?:png|jpeg|gif|webp);base64,/.test(node.src)) found.push(told);
    if (node.closest('.prose') && (node.id || node.getAttribute('name'))) found.push(`named: ${told}`);
    if (node.matches('form, dialog, button, textarea, select') && node.closest('.prose, .said')
      && !node.matches('.code-block > pre + button.copy-code[type=button]')) found.push(told);
    // A command may have marked parts; a mark has nothing but its class.
    const inner = [...node.children].filter((child) => !(node.matches('.ask .command') && child.matches('mark')));
    if (node.matches(plain) && inner.length && !node.closest('.prose')) found.push(`not text: ${told}`);
    if (node.matches('mark') && node.attributes.length > 1) found.push(`mark: ${told}`);
  }
  return found;
}"""

# Handlers that wait for somebody to come by.
POKE = """() => {
  for (const node of document.querySelectorAll('main *, aside *, nav *')) {
    for (const type of ['mouseover', 'pointerenter', 'focus', 'focusin', 'load', 'error', 'toggle', 'animationstart'])
      node.dispatchEvent(new Event(type, { bubbles: false }));
  }
}"""


async def check_inert(tab: Tab) -> None:
    await tab.page.evaluate(POKE)
    assert await tab.page.evaluate(INERT) == []
    assert await tab.page.evaluate("window.__pwned") is False
    assert len(tab.page.frames) == 1
    assert tab.faults == []
