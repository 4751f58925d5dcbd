// Shows the hub's own description; the address is relative, so that any sub-path works.
'use strict';
// What the page keeps beside the cookie of who is signed in; the name is that of web/src/lib/page_key.ts.
const hub = new URL('..', location.href);
function pageKey() {
  try {
    return JSON.parse(localStorage.getItem(`gpulse.key ${hub.href}`) ?? 'null');
  } catch {
    return null;
  }
}
SwaggerUIBundle({
  url: new URL('docs/openapi.json', location.href).href,
  dom_id: '#viewer',
  validatorUrl: null,
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  requestInterceptor: (request) => {
    const key = pageKey();
    if (key && new URL(request.url, location.href).origin === location.origin) request.headers['X-Gpulse'] = key;
    return request;
  },
});
