/** A bounded map: of more entries than it may have, those stay that were set last. */

export class NewestMap<Key, Value> extends Map<Key, Value> {
  constructor(private readonly most: number) {
    super();
  }

  /** An entry that is set again is the newest. */
  override set(key: Key, value: Value): this {
    this.delete(key);
    super.set(key, value);
    if (this.size > this.most) this.delete(this.keys().next().value!);
    return this;
  }
}
