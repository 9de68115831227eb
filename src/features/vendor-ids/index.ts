/** Ids of things that vendors keep for a key: learnt from answers, and refused to other keys. */

export { IssuedIds } from './issued-ids.ts';
export { NamedIds } from './named-ids.ts';
