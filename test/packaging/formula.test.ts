/** The Homebrew formula and the archives that it installs from, read by Ruby itself. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { archiveContents, archiveName } from '../../scripts/release/contents.ts';
import { BREWED, formula } from '../../scripts/release/formula.ts';
import { PUBLISHER } from '../../scripts/release/publisher.ts';
import { gzip, tar, withFolders } from '../../scripts/release/tar.ts';
import { ran, removeScratch, scratchFolder, tool, without } from './release-once.ts';

afterAll(removeScratch);

const VERSION = '3.1.4';
const folder = scratchFolder('formula');
const path = join(folder, 'hopgate.rb');
const sums = new Map<(typeof BREWED)[number], string>();

beforeAll(() => {
  for (const target of BREWED) {
    const binary = new TextEncoder().encode(target);
    const entries = archiveContents({ target, version: VERSION, binary, notices: '' });
    const archive = gzip(tar(withFolders(entries), 1_700_000_000));
    writeFileSync(join(folder, `${archiveName(VERSION, target)}.tar.gz`), archive);
    sums.set(target, createHash('sha256').update(archive).digest('hex'));
  }
  writeFileSync(path, formula({ version: VERSION, sums }));
});

// Stand-ins for Homebrew's methods that the formula calls: they record their arguments.
const STUB = `require 'json'
$out = { archives: {}, installs: [], service: {} }
class Recorder
  def initialize(into) = @into = into
  def install(*what) = what.each { |one| @into << (one.is_a?(Hash) ? one.keys.first : one) }
end
class Formula
  class << self
    def on_macos = (@os = 'darwin'; yield)
    def on_linux = (@os = 'linux'; yield)
    def on_arm = (@arch = 'arm64'; yield)
    def on_intel = (@arch = 'x64'; yield)
    def url(value) = @url = value
    def sha256(value) = $out[:archives]["#{@os}-#{@arch}"] = { url: @url, sum: value }
    def version(value = nil) = value ? $out[:version] = value : $out[:version]
    def service(&block) = Service.new.instance_eval(&block)
    def test(&block) = $out[:test] = true
    def method_missing(*) = nil
    def respond_to_missing?(*) = true
  end
  def method_missing(name, *) = Recorder.new($out[:installs])
  def respond_to_missing?(*) = true
end
class Service
  def run(words) = $out[:service][:run] = words.map(&:to_s)
  def opt_bin = Class.new { def /(name) = "/opt/bin/#{name}" }.new
  def var = Class.new { def /(name) = "/var/#{name}" }.new
  def method_missing(name, *rest, **named) = $out[:service][name] = rest.first || named
  def respond_to_missing?(*) = true
end
load ARGV[0]
Hopgate.new.install
puts JSON.generate($out)
`;

const ruby = tool('ruby');
describe.skipIf(ruby === undefined)(`hopgate.rb${without('ruby')}`, () => {
  test('the formula is valid Ruby', async () => {
    expect(await ran([ruby!, '-wc', path])).toEqual({ code: 0, out: 'Syntax OK\n', err: '' });
  });

  test('the formula names each archive with its checksum, and installs only files in it', async () => {
    writeFileSync(join(folder, 'stub.rb'), STUB);
    const { code, out, err } = await ran([ruby!, join(folder, 'stub.rb'), path]);
    expect([code, err]).toEqual([0, '']);
    const read = JSON.parse(out) as {
      version: string;
      archives: Record<string, { url: string; sum: string }>;
      installs: string[];
      service: Record<string, unknown>;
      test: boolean;
    };
    expect(read.version).toBe(VERSION);
    expect(Object.keys(read.archives).sort()).toEqual([...BREWED].sort());
    expect(read.installs).toContain('man/hopgate.1');
    expect(read.installs.filter((one) => one.startsWith('completions/'))).toHaveLength(3);
    for (const target of BREWED) {
      const { url, sum } = read.archives[target]!;
      const archive = url.replace('file://', '');
      expect(url).toBe(`file://${join(folder, archiveName(VERSION, target))}.tar.gz`);
      expect(sum).toBe(createHash('sha256').update(readFileSync(archive)).digest('hex'));
      const { out: listing } = await ran(['tar', '-tzf', archive]);
      const members = listing.split('\n').map((member) => member.split('/').slice(1).join('/'));
      expect(read.installs.filter((one) => !members.includes(one))).toEqual([]);
      expect(
        (await ran(['tar', '-xzOf', archive, `${archiveName(VERSION, target)}/hopgate`])).out,
      ).toBe(target);
    }
    expect(read.service.run).toEqual([
      '/opt/bin/hopgate',
      'serve',
      '--drain',
      expect.stringMatching(/^\d+$/),
    ]);
    expect(read.test).toBe(true);
  });
});

describe('the formula', () => {
  test('the formula uses the address of the release', () => {
    const text = formula({ version: VERSION, sums, baseUrl: 'https://downloads.test/hopgate/v3/' });
    expect(text).toContain(
      `url "https://downloads.test/hopgate/v3/${archiveName(VERSION, 'linux-x64')}.tar.gz"`,
    );
    expect(text).toContain(`homepage "${PUBLISHER.homepage}"`);
    expect(text).not.toMatch(/@[A-Z]/);
  });

  test('a missing archive stops the formula', () => {
    const some = new Map([...sums].slice(1));
    expect(() => formula({ version: VERSION, sums: some })).toThrow('no archive for darwin-arm64');
  });
});
