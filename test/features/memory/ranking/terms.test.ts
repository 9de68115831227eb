/** Terms of texts: scripts with and without spaces, mixed ones, and the terms of a question. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { stem } from '../../../../src/lib/text/stem.ts';
import {
  isSingleCharacter,
  queryTerms,
  termsOf,
} from '../../../../src/features/memory/ranking/terms.ts';

const terms = (text: string) => [...termsOf(text).counts.keys()];

describe('terms of a text', () => {
  test('unspaced scripts give characters and pairs, so that two characters are found', () => {
    expect(terms('火锅店')).toEqual(['火', '火锅', '锅', '锅店', '店']);
    for (const [text, part] of [
      ['東京タワーへ行く', 'タワー'],
      ['ฉันแพ้ถั่วลิสง', 'แพ้'],
      ['학교에서 만나요', '학교'],
    ] as const) {
      const own = new Set(terms(text));
      expect(terms(part).filter((term) => !own.has(term))).toEqual([]);
    }
  });

  test('adjacent scripts are separated, letters and digits are also found alone', () => {
    expect(terms('我用iPhone17拍照')).toEqual(
      expect.arrayContaining(
        ['我用', 'iphone17', 'iphon', '17', '拍照'].map((t) =>
          t === 'iphon' ? stem('iphone') : t,
        ),
      ),
    );
    expect(terms('我用iPhone17拍照')).not.toContain('用i');
  });

  test('character width, case and accents are ignored', () => {
    expect(terms('ＣＡＦÉ ﬁne')).toEqual(terms('cafe fine'));
    expect(terms('ｶﾞﾚｰｼﾞ')).toEqual(terms('ガレージ'));
  });

  test('marks that belong to letters stay: Japanese が is not か', () => {
    expect(terms('が')).not.toEqual(terms('か'));
    expect(terms('किताब')).not.toEqual(terms('कतब'));
  });

  test('forms of an English word have one stem', () => {
    for (const [one, other] of [
      ['allergies', 'allergy'],
      ['moving', 'moved'],
      ['planned', 'planning'],
      ['rehearsals', 'rehearsal'],
      ['kids', 'kid'],
    ] as const) {
      expect([one, stem(one)]).toEqual([one, stem(other)]);
    }
    expect(stem('bus')).toBe('bus');
    expect(stem('glass')).toBe('glass');
  });

  test('no term contains syntax of the index or a query (random Unicode)', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        for (const term of terms(text)) {
          expect(term).not.toMatch(/[^\p{L}\p{N}\p{M}\p{Extended_Pictographic}ー]/u);
          expect(term.length).toBeGreaterThan(0);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('a text that is its own question shares every term with itself (random Unicode)', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const own = new Set(terms(text));
        expect(terms(`${text} ${text}`).every((term) => own.has(term))).toBe(true);
        // Question words are dropped; the rest appears in the text, possibly beside a gap.
        for (const term of queryTerms(text)) expect([...own]).toContain(term);
      }),
      { numRuns: 300 },
    );
  });
});

describe('terms of a question', () => {
  test('words that every question has are left out', () => {
    expect(queryTerms('Where does Jonas hide the key?').toSorted()).toEqual(
      ['hide', 'jona', 'kei'].map((word) => (word === 'kei' ? stem('key') : word)).toSorted(),
    );
    expect(queryTerms('豆包喜欢吃什么')).not.toContain('什么');
  });

  test('a question without other words keeps them', () => {
    expect(queryTerms('什么')).toContain('什么');
    expect(queryTerms('who')).toEqual(['who']);
    expect(queryTerms('！？ …')).toEqual([]);
  });

  test('a single character is distinguished from a pair', () => {
    expect([
      isSingleCharacter('猫'),
      isSingleCharacter('猫粮'),
      isSingleCharacter('a'),
      isSingleCharacter('𠮷'),
    ]).toEqual([true, false, false, true]);
  });
});
