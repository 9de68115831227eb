/** The memory: events kept by space, recalled by what fits; embedded, or a store elsewhere. */

export type { MemoryBase, MemoryWatch } from './base.ts';
export { embeddedMemory } from './store/embedded.ts';
export { type Embedder, embedder } from './store/embedder.ts';
export { externalMemory } from './store/external.ts';
