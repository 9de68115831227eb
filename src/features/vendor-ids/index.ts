/** What a vendor keeps for a key, by the ids that it gives out: learnt from answers, and refused to other keys. */

export { IssuedIds } from './issued-ids.ts';
export { NamedIds } from './named-ids.ts';
