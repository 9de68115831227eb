/** Questions in German, Spanish, French, Portuguese and Russian find other forms of their words, and not by empty words; English ones stay. */

import { describe, expect, test } from 'bun:test';
import { lookedUpTerms } from '../../../../src/features/memory/ranking/known-terms.ts';
import { readQuestion } from '../../../../src/features/memory/ranking/question.ts';
import { queryTerms, termsOf } from '../../../../src/features/memory/ranking/terms.ts';

const NOW = Date.parse('2026-11-20T12:00:00Z');
const lookedUp = (question: string) => lookedUpTerms(readQuestion(question, NOW));
const finds = (question: string, text: string) => {
  const { counts } = termsOf(text);
  return [...lookedUp(question).values()].flat().some((form) => counts.has(form));
};

/** A question with one telling word, and statements with another form of it. */
const FOUND: Readonly<Record<string, readonly (readonly [string, ...string[]])[]>> = {
  German: [
    ['Wer hat das geputzt?', 'Ich putze', 'du putzt', 'putzten'],
    ['Wo sind die Stühle?', 'der Stuhl', 'den Stühlen', 'des Stuhls'],
    ['Was für ein Buch ist das?', 'zwei Bücher', 'in den Büchern'],
    ['Wo sind denn die Straßen?', 'eine Straße'],
    ['Was hat er für eine Lösung?', 'Lösungen'],
    ['Wie war das mit dem Auto?', 'Autos'],
    ['Wer hat die Kleider?', 'ein Kleid'],
    ['Wem hast du das geschenkt?', 'ich schenke', 'er schenkte'],
    ['Wo ist der Fluss?', 'Flüsse'],
    ['Welche sind denn die schnellen?', 'schnell', 'schneller', 'schnelles'],
  ],
  Spanish: [
    ['¿Quién los ha cocinado?', 'cocino', 'cocinamos', 'cocinaba'],
    ['¿Dónde están las canciones?', 'una canción'],
    ['¿De quién es el lápiz?', 'los lápices'],
    ['¿De quién son los coches?', 'un coche'],
    ['¿Cuándo lo vendieron?', 'vendo', 'vender', 'vendió'],
    ['¿Qué quería beber?', 'bebo', 'bebimos', 'bebieron'],
    ['¿Cuáles son los colores?', 'el color'],
    ['¿Quién es la profesora?', 'los profesores', 'el profesor'],
    ['¿Quién lo escribió?', 'escribimos', 'escribir'],
    ['¿Dónde está la camisa?', 'camisas'],
  ],
  French: [
    ['Qui est-ce qui les a cuisinés ?', 'je cuisine', 'nous cuisinons', 'cuisinait'],
    ['Quels sont les journaux ?', 'un journal'],
    ['Où sont les gâteaux ?', 'un gâteau'],
    ['Qui est-ce qui a fini ?', 'nous finissons', 'finir', 'ils finissent'],
    ['Qui est la voisine ?', 'les voisines'],
    ['Comment sont les maisons ?', 'une maison'],
    ['Qui est-ce que tu as invité ?', "j'invite", 'invitait', 'invitez'],
    ['Où sont ses cheveux ?', 'un cheveu'],
    ['Quels sont les grandes ?', 'grand', 'grands', 'grande'],
    ['Qui va les dessiner ?', 'elle dessinera', 'dessiné'],
  ],
  Portuguese: [
    ['Quem é que os cozinhou?', 'cozinho', 'cozinhamos', 'cozinhava'],
    ['Quais são as canções?', 'uma canção'],
    ['Onde estão os animais?', 'um animal'],
    ['De quem são os carros?', 'um carro'],
    ['Quando é que o venderam?', 'vendo', 'vender', 'vendeu'],
    ['O que é que ela quer beber?', 'bebo', 'bebemos', 'bebeu'],
    ['Quais são as cores?', 'a cor'],
    ['Quem são os jovens?', 'um jovem'],
    ['Quem é que abriu?', 'abrimos', 'abrir'],
    ['Onde está a camisa?', 'camisas'],
  ],
  Russian: [
    ['Кто у нас готовил?', 'готовлю', 'готовила', 'готовит'],
    ['Где мои книги?', 'книга', 'книгой', 'о книгах'],
    ['Что за машины?', 'машина', 'на машине', 'машину'],
    ['Какие у нас новости?', 'новость', 'новостях'],
    ['Кто будет читать?', 'читал', 'читаю', 'читают'],
    ['Где он купался?', 'купаться', 'купались'],
    ['Что за красная?', 'красный', 'красные', 'красного'],
    ['С кем у вас встреча?', 'встречу', 'встречи', 'встречах'],
    ['О каком городе?', 'город', 'города', 'в городах'],
    ['Кто это нарисовал?', 'нарисовала', 'нарисовать', 'нарисован'],
  ],
};
for (const [language, pairs] of Object.entries(FOUND)) {
  describe(language, () => {
    for (const [question, ...texts] of pairs) {
      test(`${question} finds ${texts.join(', ')}`, () => {
        expect(texts.filter((text) => !finds(question, text))).toEqual([]);
      });
    }
  });
}

test('a question is not found by its empty words, and keeps them where it has no others', () => {
  expect([...lookedUp('Wer hat mir das von der Katze gesagt?').keys()]).toEqual([
    'katze',
    'gesagt',
  ]);
  expect([...lookedUp('¿De qué color es el techo?').keys()]).toEqual(['color', 'techo']);
  expect([...lookedUp('Wer ist das denn?').keys()]).toEqual([...queryTerms('Wer ist das denn?')]);
});

test('English questions with names and words of other languages stay as they are', () => {
  for (const question of [
    'Who did die in the film?',
    'Does Maria como work at La Casa?',
    'What did Paul say about Die Hard?',
    'son of Paul',
    'Where is the Rue de la Paix that I told you of?',
    'peanut allergy',
    '我的猫叫什么名字？',
  ]) {
    const { terms, forms, hints } = readQuestion(question, NOW);
    expect(forms.size).toBe(0);
    expect(terms.slice(0, terms.length - hints)).toEqual([...queryTerms(question)]);
  }
});

test('a long question is looked up in a bounded number of forms, those of its last words', () => {
  const long = `${Array.from({ length: 3000 }, (_, at) => `книг${'абвгд'[at % 5]}${'жзикл'[(at >> 3) % 5]}${'мнопр'[(at >> 6) % 5]}ами`).join(' ')} машины`;
  const found = lookedUp(`где у нас ${long}`);
  expect([...found.values()].flat().length).toBeLessThan(700);
  expect(found.get('машины')).toContain('машина');
});
