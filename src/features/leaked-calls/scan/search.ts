/** The bound on what the search for leaks in one reply may cost. */

/**
 * What the search for leaks in one reply may cost, some 20 ms of the event loop: a place where one could begin
 * costs 1, a block that is read more than a hundred. No model answers with thousands of calls; a reply that does
 * is about markup, and its rest stays text.
 */
export class Search {
  /** Below 0 no more is looked for. */
  left = 131_072;
}
