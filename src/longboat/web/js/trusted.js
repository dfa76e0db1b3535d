// The only place where text becomes markup: only responses of POST /v1/render come here.
// Trusted Types enforce it: no other module can set innerHTML.

const policy = globalThis.trustedTypes
  ? trustedTypes.createPolicy('longboat', { createHTML: (html) => html })
  : { createHTML: (html) => html };

/** A fragment of rendered HTML. */
export function fragment(rendered) {
  const template = document.createElement('template');
  template.innerHTML = policy.createHTML(rendered);
  return template.content;
}
