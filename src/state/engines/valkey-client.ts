/** The client library of the cache, as a module of its own: the bundler cannot load CommonJS by `import()` reliably. */

// It writes `.then((m) => x(m.default))`, and a minified `x` that is called `m`, too, calls the module.
export { Cluster, Redis, ReplyError } from 'iovalkey';
