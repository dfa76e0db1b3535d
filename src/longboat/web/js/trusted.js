// The one place where text becomes markup: only what POST /v1/render answered comes here.
// The page's policy enforces it: without this Trusted Types policy no other module could set innerHTML.

const policy = globalThis.trustedTypes
  ? trustedTypes.createPolicy('longboat', { createHTML: (html) => html })
  : { createHTML: (html) => html };

/** A fragment of rendered HTML. */
export function fragment(rendered) {
  const template = document.createElement('template');
  template.innerHTML = policy.createHTML(rendered);
  return template.content;
}
