/** Reads a certificate and its key from files, and says in words why a pair cannot be used. */

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { statSync } from 'node:fs';
import { readNamedFile } from '../text/named-file.ts';
import { messageOf } from '../text/thrown.ts';

/** A certificate with its key, both as PEM. */
export interface KeyPair {
  /** The certificate, and behind it those that lead to its authority. */
  readonly cert: string;
  readonly key: string;
  /** The names and addresses that it is for, `gateway.example.com`; those of the subject where it lists none. */
  readonly names: readonly string[];
  /** Milliseconds of the clock. */
  readonly from: number;
  readonly until: number;
}

/** The pair cannot be used; the message says why and names the file, and quotes nothing of it. */
export class UnusableKeyPair extends Error {
  override readonly name = 'UnusableKeyPair';
}

/** Bytes of a file; a chain of certificates has some thousands, a store with all public authorities 300 KB. */
const MAX_BYTES = 4 * 1024 * 1024;

/** @throws UnusableKeyPair for a file that cannot be read, is no PEM, or belongs to another pair */
export const readKeyPair = (certFile: string, keyFile: string): KeyPair =>
  keyPairOf(readPem(certFile), readPem(keyFile), certFile, keyFile);

/** The same of files that were read; their names are for messages. @throws UnusableKeyPair */
export function keyPairOf(cert: string, key: string, certFile: string, keyFile: string): KeyPair {
  const certificate = certificateIn(cert, certFile);
  if (!certificate.checkPrivateKey(keyIn(key, keyFile))) {
    throw new UnusableKeyPair(
      `the key in ${keyFile} does not belong to the certificate in ${certFile}`,
    );
  }
  return {
    cert,
    key,
    names: namesOf(certificate),
    from: Date.parse(certificate.validFrom),
    until: Date.parse(certificate.validTo),
  };
}

const EACH_CERTIFICATE =
  /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[^-]*-----END (?:TRUSTED |X509 )?CERTIFICATE-----/g;

/** @throws UnusableKeyPair for a file of authorities that cannot be read, or holds a broken certificate */
export function checkAuthorities(file: string): void {
  const text = readPem(file);
  for (const one of text.match(EACH_CERTIFICATE) ?? [text]) certificateIn(one, file);
}

/** The same certificate and key. */
export const isSamePair = (a: KeyPair, b: KeyPair): boolean => a.cert === b.cert && a.key === b.key;

const LATE_MS = 14 * 86_400_000;
const LATE_SHARE = 1 / 6;

/** A certificate that is renewed in time has more left: a sixth of its time, or two weeks. */
export const endsSoon = ({ from, until }: KeyPair, now: number): boolean =>
  until - now < Math.min(LATE_MS, (until - from) * LATE_SHARE);

/** Other users of this machine may read the file, or write it. Always false where files have no mode. */
export function isOpenToOthers(file: string): boolean {
  if (process.platform === 'win32') return false;
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
  return (mode & OTHERS_READ) !== 0 || (mode & OTHERS_WRITE) !== 0;
}

const OTHERS_READ = 0o004;
const OTHERS_WRITE = 0o022;

function readPem(file: string): string {
  try {
    return readNamedFile(file, MAX_BYTES).replace(/^\uFEFF/, '');
  } catch (thrown) {
    throw new UnusableKeyPair(`the file ${file} ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** The first one of a text; the file's name is for messages. @throws UnusableKeyPair */
export function certificateIn(text: string, file: string): X509Certificate {
  try {
    return new X509Certificate(text);
  } catch (thrown) {
    const what = text.includes('-----BEGIN CERTIFICATE')
      ? 'a broken certificate'
      : 'no certificate in PEM form';
    throw new UnusableKeyPair(`${file} holds ${what}`, { cause: thrown });
  }
}

// RFC 7468 and the older form of RFC 1421.
const ENCRYPTED = /^-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m;

function keyIn(text: string, file: string): KeyObject {
  if (ENCRYPTED.test(text)) {
    throw new UnusableKeyPair(`the key in ${file} has a passphrase: write it without one`);
  }
  try {
    return createPrivateKey(text);
  } catch (thrown) {
    throw new UnusableKeyPair(`${file} holds no private key in PEM form`, { cause: thrown });
  }
}

function namesOf(certificate: X509Certificate): readonly string[] {
  const listed = certificate.subjectAltName ?? '';
  const names = listed
    .split(', ')
    .flatMap((one) => /^(?:DNS|IP Address):(.+)$/.exec(one)?.[1] ?? []);
  if (names.length > 0) return names;
  const subject = /^CN=(.+)$/m.exec(certificate.subject)?.[1];
  return subject === undefined ? [] : [subject];
}
