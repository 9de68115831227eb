/** The memory: events kept by space, recalled by what fits; embedded, or a store elsewhere. */

export type { MemoryBase, MemoryWatch } from './base.ts';
export { embeddedMemory } from './embedded.ts';
export { type Embedder, embedder } from './embedder.ts';
export { externalMemory } from './external.ts';
