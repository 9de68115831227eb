/** Makes something with its first use. A failure is one of that use alone: the next one tries again. */
export class MadeOnce<T> {
  /** As far as it is made or being made. */
  made: Promise<T> | undefined;

  constructor(private readonly make: () => Promise<T>) {}

  get(): Promise<T> {
    this.made ??= this.make().catch((thrown: unknown) => {
      this.made = undefined;
      throw thrown;
    });
    return this.made;
  }
}
