// Shows the hub's own description; the address is relative, so that any sub-path works.
'use strict';
SwaggerUIBundle({
  url: new URL('docs/openapi.json', location.href).href,
  dom_id: '#viewer',
  validatorUrl: null,
  deepLinking: true,
  defaultModelsExpandDepth: 0,
});
