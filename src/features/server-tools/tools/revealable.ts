/** A credential as the configuration hands it out: it prints as nothing, and is asked for where it is sent. */

export interface Revealable {
  reveal(): string;
}

/** The values in the clear, for the moment of sending. */
export const revealed = (
  values: Readonly<Record<string, Revealable>>,
): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.reveal()]));
