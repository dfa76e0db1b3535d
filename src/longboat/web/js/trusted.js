// The only place where text becomes markup: only responses of POST /v1/render come here. Also the address of the only
// worker. Trusted Types enforce it: no other module can set innerHTML or load a script.

const rules = { createHTML: (html) => html, createScriptURL: () => '/assets/js/pushworker.js' };
const policy = globalThis.trustedTypes ? trustedTypes.createPolicy('longboat', rules) : rules;

/** A fragment of rendered HTML. */
export function fragment(rendered) {
  const template = document.createElement('template');
  template.innerHTML = policy.createHTML(rendered);
  return template.content;
}

/** The service worker's script. */
export const workerAddress = () => policy.createScriptURL('');
