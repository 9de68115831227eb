/** Questions in languages other than English and Chinese: their empty words, and other forms of their words by usual endings. */

import { stem } from '../../../lib/text/stem.ts';
import { wordSet } from '../../../lib/text/words.ts';
import { folded, plainWords, STOP_WORDS } from './terms.ts';

/** Words and endings are as the index holds them, without accents: ё is е, й is и. */
interface Language {
  /** Letters that it alone has among these. */
  readonly letters: RegExp;
  /** Question words, articles, pronouns, prepositions, auxiliaries. */
  readonly empty: ReadonlySet<string>;
  /** Endings that stand for each other, the longest first. */
  readonly endings: readonly (readonly string[])[];
  /** The prefix of participles, which other forms do not have. */
  readonly prefix?: string;
}

/** Groups of endings; `-` stands for no ending. */
const groups = (...texts: string[]) =>
  texts.map((text) =>
    text
      .split(' ')
      .map((ending) => (ending === '-' ? '' : ending))
      .sort((a, b) => b.length - a.length),
  );

const LANGUAGES: readonly Language[] = [
  {
    letters: /[ßäöü]/,
    empty:
      wordSet(`aber alle alles als also am an auch auf aus bei beim bin bis bist da damit dann das dass dein deine
      dem den denn der des dich die dir doch du durch ein eine einem einen einer eines er es etwas euch fur gegen
      gewesen hab habe haben hast hat hatte hatten ich ihm ihn ihr ihre ihrem ihren ihrer im in ins ist ja jetzt kann
      mal man mehr mein meine meinem meinen mich mir mit musste mussten nach nicht noch nur ob oder schon sehr sein
      seine seinem seinen seit sich sie sind so uber um und uns unser unsere unter vom von vor wann war waren warum was
      weil welche welchem welchen welcher welches wem wen wenn wer werden wessen wie wieder wieso will wir wird wo
      wogegen woher wohin wollen wollte wollten womit woran woruber worum wovon wozu wurde wurden zu zum zur zwischen`),
    endings: groups('- e en em er es n s ern t et st te ten test'),
    prefix: 'ge',
  },
  {
    letters: /[ñ¿¡]/,
    empty:
      wordSet(`a al algo algun alguna alguno alguien ante como con cual cuales cuando cuanta cuantas cuanto cuantos de
      debe del desde donde dos e el ella ellas ellos en entre era eran eres es esa ese eso esta estaba estaban estan
      estar estas este esto estoy fue fueron ha haber habia han has hasta hay he hemos la las le les lo los mas me mi
      mis mucho muy ni no nos nuestra nuestro o os para pero por porque puede pueden que queria querian quien quienes
      quiere quieren se sea ser si sin sobre son soy su sus tal tambien te tenia tenian tiene tienen todo todos tu tus
      un una unas uno unos y ya yo`),
    endings: groups(
      '- s es a as',
      'z ces',
      'o a os as e es ar ado ada ados adas amos an aban aba aron aste ando are aremos ara aran aria arian ais',
      'er ir e es en emos imos io ia ian ido ida idos idas iendo ieron i era eran eria ira iran o a',
    ),
  },
  {
    letters: /[èêëîïœùûÿ]/,
    empty:
      wordSet(`a ai as au aux avait avaient avec avez avoir avons c ce cela celle celui ces cet cette chez comme comment
      combien d dans de des devait devaient doit du elle elles en est et etaient etait ete etre eu eux fait ici il ils
      j je l la le les leur leurs lequel laquelle lui m ma mais me meme mes moi mon n ne nos notre nous on ont ou par pas
      peut peuvent plus pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se ses si son sont suis
      sur t ta te tes toi ton tres tu un une veut veulent voulait voulaient vos votre vous y`),
    endings: groups(
      '- s x e es',
      'al aux ale ales',
      'e er ee es ees ez ent ons ait ais aient a ai era erons eront erait ant',
      'ir i is it ie ies issons issez issait issent ira iront',
    ),
  },
  {
    letters: /[ãõ]/,
    empty:
      wordSet(`a ao aos as ate cada com como da das de dela dele deles do dos e ela elas ele eles em entre era eram essa
      esse esta estao estar estava estavam este eu foi foram ha isso isto ja lhe lhes lo mais mas me mesmo meu meus minha
      minhas muito na nao nas nem no nos nossa nosso num numa o onde os ou para pela pelo por porque pode podem qual quais
      quando quanta quantas quanto quantos que quem queria queriam quer querem se sem ser seu seus si so sobre sua suas sao
      tambem tem te tinha tinham um uma umas uns voce voces`),
    endings: groups(
      '- s es a as',
      'ao oes aes aos',
      'al ais el eis il is m ns',
      'o a os as e ar ado ada ados adas amos am avam ava aram ou ei ando are aremos ara arao aria ariam',
      'er ir e em emos imos ia iam ido ida idos idas indo eu iu eram iram era ira o a i',
    ),
  },
  {
    letters: /[\u0400-\u04ff]/,
    empty:
      wordSet(`а без бы был была были было быть в вам вас во вот все всех вы где да для до должен должна должны его ее еи
      ему если есть еще же за зачем и из или им их к как какая какие каких какого какои каком какому какую кем ко когда
      которая которого которои которые которыи кого ком кому кто куда ли мне мог могла могли можно мои мои моя мы на над
      нам нас наш наша не него нее неи нет ни ним них но ну о об он она они от откуда по под почему при про с сам свои
      свою себе себя сколько со так также там твои те тебе тебя то тоже том тому тот ту ты у уже хотел хотела хотели хочет
      чего чеи чем чему что чтобы чье чьеи чьи чья эта эти это этого этои этом этот эту я`),
    endings: groups(
      '- а я ы и у ю е о ь ои еи ом ем ам ям ах ях ами ями ов ев ию ием ии ия иях',
      'ыи ии ои ая яя ое ее ые ие ого его ому ему ым им ых их ую юю ыми ими ом ем',
      'ть ти л ла ло ли ю у ет ит ют ут ят ат ем им ешь ишь ете ите и н на но ны',
      'ать ал ала ало али аю ает ают аем аи ан ана ано аны',
      'ить ил ила ило или ю лю у ит ят им ишь и ен ена ено ены',
      'ться тся лся лась лось лись ется ится ются утся ятся атся',
    ),
  },
];

/** Shorter words have no endings, and longer ones are hardly words. */
const MIN_LENGTH = 4;
const MAX_LENGTH = 32;
/** Letters before an ending. */
const MIN_ROOT = 3;

/** Signs that a letter of a language counts as; one of its words counts as one. */
const LETTER = 2;
/** Signs that make a language likely: a single word may as well be a name. */
const MIN_SIGNS = 2;

/** The language that most of the empty words and letters tell of, if it is not English. @param said folded */
function languageOf(said: string, plain: readonly string[]): Language | undefined {
  let most = Math.max(MIN_SIGNS - 1, plain.filter((word) => STOP_WORDS.has(word)).length);
  let found: Language | undefined;
  for (const language of LANGUAGES) {
    let signs = language.letters.test(said) ? LETTER : 0;
    for (const word of plain) if (language.empty.has(word)) signs++;
    if (signs <= most) continue;
    most = signs;
    found = language;
  }
  return found;
}

/** Other forms by which the words of one question are looked up; a long question has them for its last words. */
const MAX_FORMS = 500;

export interface Inflected {
  readonly terms: readonly string[];
  /** Other forms of the words of terms, as the index may hold them. */
  readonly forms: ReadonlyMap<string, readonly string[]>;
}

/** The terms without the empty words of the question's language, unless it has no others, and forms of them. */
export function inflectedTerms(query: string, terms: readonly string[]): Inflected {
  const plain = plainWords(query);
  const language = languageOf(folded(query), plain);
  const forms = new Map<string, readonly string[]>();
  if (language === undefined) return { terms, forms };
  const empty = new Set(plain.filter((word) => language.empty.has(word)).map(stem));
  const telling = terms.filter((term) => !empty.has(term));
  let left = MAX_FORMS;
  for (const word of new Set(plain.toReversed())) {
    if (language.empty.has(word)) continue;
    const made = inflected(word, language);
    left -= made.length;
    if (left < 0) break;
    if (made.length > 0) forms.set(stem(word), made);
  }
  return { terms: telling.length > 0 ? telling : terms, forms };
}

function inflected(word: string, { endings, prefix = '' }: Language): readonly string[] {
  if (word.length < MIN_LENGTH || word.length > MAX_LENGTH || /\p{N}/u.test(word)) return [];
  const forms = new Set<string>();
  for (const group of endings) {
    const ending = group.find(
      (one) =>
        word.endsWith(one) &&
        word.length - one.length >= MIN_ROOT &&
        !(one === 's' && word.endsWith('ss')),
    );
    if (ending === undefined) continue;
    const root = word.slice(0, word.length - ending.length);
    const roots = [root];
    if (prefix !== '') {
      if (root.startsWith(prefix) && root.length - prefix.length >= MIN_ROOT)
        roots.push(root.slice(prefix.length));
      else roots.push(prefix + root);
    }
    for (const one of roots) for (const other of group) forms.add(stem(one + other));
  }
  return [...forms];
}
