/** A labelled set for recall in further languages: for each a short group chat, and questions that inflect its words. */

/** `Source: text #name`, the newest last. */
const GERMAN = `
Anna: Ich reagiere auf Erdnüsse mit einer schweren Allergie. #peanut
Max: Guten Morgen zusammen, wann geht es denn heute los?
Lena: Unsere beiden Katzen heißen Mia und Mogli. #cat
Paul: Was für ein Tag, ich bin total müde.
Anna: Wir mieten seit März eine Wohnung in der Gartenstraße. #flat
Max: Hat jemand eine Ahnung, wo die Schlüssel sind?
Max: Ich habe mir letzte Woche ein rotes Fahrrad gekauft. #bike
Lena: Das ist ja toll, wie hast du das gemacht?
Lena: Am Dienstag muss ich zum Zahnarzt, zwei Füllungen. #dentist
Paul: Ich war gestern nicht da, was habt ihr gemacht?
Paul: Meine Tochter lernt seit einem Jahr Geige. #violin
Anna: Mir ist so kalt in diesem Büro.
Anna: Im Juli reisen wir mit dem Zug nach Norwegen. #norway
Max: Wer kommt eigentlich am Wochenende mit?
Max: Sonntags backe ich immer ein Brot mit Walnüssen. #bread
Lena: Ich weiß nicht, ob das eine gute Idee ist.
Lena: Mein Sohn hat alle Prüfungen an der Universität bestanden. #exam
Paul: Wie spät ist es bei euch?
Paul: Mein Bruder arbeitet als Pfleger in den Krankenhäusern der Stadt. #nurse
Anna: Das Wetter ist heute wirklich schlecht.
Anna: Gestern haben wir einen alten Film über Wale gesehen. #whale
Max: Wo ist denn der Chef heute?
Max: Die Besprechungen finden ab jetzt freitags um neun statt. #meeting
Lena: Was gibt es in der Kantine zu essen?
Lena: Ich habe meine Kochbücher an Petra verliehen. #book
Paul: Welcher Bus fährt denn heute noch?
Paul: Die Wände in der Küche haben wir gelb gestrichen. #wall
Anna: Wie war das noch mal mit dem Passwort?
Anna: Ich trinke abends keinen Kaffee mehr, davon schlafe ich schlecht. #coffee
Max: Wann ist denn endlich Wochenende?
Max: Mein Großvater sammelte früher Münzen aus Persien. #coin
Lena: In welchem Raum sind wir heute?
Lena: Der Hund meiner Nachbarin bellt jede Nacht. #dog
Paul: Was ist das für ein Lärm, wer macht denn das?
Paul: Meine Eltern haben sich einen Garten am See gewünscht. #garden
Anna: Wo hast du das her?
Max: Ich hab keine Lust mehr, wer kommt mit nach Hause?
Lena: Warum ist das Licht in meinem Zimmer so dunkel?
Paul: Wie heißt denn das auf Deutsch?
? Wer hat eine Erdnuss nicht vertragen? #peanut
? Wie heißt die Katze von Lena? #cat
? In welcher Straße hat Anna Wohnungen gemietet? #flat
? Welche Farbe haben die Fahrräder, die Max kaufen wollte? #bike
? Wann war das mit den Zahnärzten? #dentist
? Welches Instrument lernen die Töchter von Paul? #violin
? Wohin ist die Familie im Juli mit den Zügen gereist? #norway
? Was für Brote hat er gebacken? #bread
? Wer musste die Prüfung bestehen? #exam
? In was für einem Krankenhaus haben die Brüder gearbeitet? #nurse
? Worum ging es in den Filmen, die sie sehen wollten? #whale
? An welchem Tag ist die Besprechung? #meeting
? Wem hat sie das Kochbuch geliehen? #book
? Wie wurde die Wand der Küchen gestrichen? #wall
? Was hat er für eine Münze gesammelt? #coin
? Wessen Hunde haben nachts gebellt? #dog
? Was für Gärten wünschen sich die Eltern? #garden
`;
const SPANISH = `
Ana: Soy alérgica a los cacahuetes desde niña. #peanut
Luis: Buenos días a todos, ¿cuándo empezamos hoy?
Elena: Nuestros dos gatos se llaman Mía y Tom. #cat
Pablo: Qué día, estoy muy cansado.
Ana: Desde marzo alquilamos un piso en la calle del Olmo. #flat
Luis: ¿Alguien sabe dónde están las llaves?
Luis: La semana pasada me compré una bicicleta roja. #bike
Elena: Qué bien, ¿y cómo lo has hecho?
Elena: El martes tengo cita con el dentista por dos empastes. #dentist
Pablo: Ayer no estuve, ¿qué hicisteis?
Pablo: Mi hija estudia violín desde hace un año. #violin
Ana: Qué frío hace en esta oficina.
Ana: En julio viajaremos en tren a Noruega. #norway
Luis: ¿Quién viene este fin de semana?
Luis: Los domingos horneo siempre un pan con nueces. #bread
Elena: No sé si es una buena idea.
Elena: Mi hijo aprobó todos los exámenes de la universidad. #exam
Pablo: ¿Qué hora es ahí donde estáis?
Pablo: Mi hermano trabaja como enfermero en un hospital del norte. #nurse
Ana: El tiempo de hoy es horrible.
Ana: Anoche vimos una película antigua sobre ballenas. #whale
Luis: ¿Dónde está hoy el jefe?
Luis: Las reuniones serán a partir de ahora los viernes a las nueve. #meeting
Elena: ¿Qué hay para comer en la cantina?
Elena: Le presté a Petra mis libros de cocina. #book
Pablo: ¿Qué autobús pasa todavía a esta hora?
Pablo: Pintamos de amarillo las paredes de la entrada. #wall
Ana: ¿Cuál era la contraseña?
Ana: Por la noche ya no bebo café, porque duermo mal. #coffee
Luis: ¿Cuándo llega por fin el viernes?
Luis: Mi abuelo coleccionaba monedas de Persia. #coin
Elena: ¿En qué sala estamos hoy?
Elena: El perro de mi vecina ladra todas las noches. #dog
Pablo: ¿Qué es ese ruido, quién lo hace?
Pablo: Mis padres siempre desearon un jardín cerca del lago. #garden
Ana: ¿De dónde lo has sacado?
Luis: No tengo ganas de nada, ¿quién viene a casa?
Elena: ¿Por qué está tan oscura la luz de mi cuarto?
Pablo: ¿Cómo se llama eso en español?
? ¿Quién no puede comer ni un cacahuete? #peanut
? ¿Cómo se llama el gato de Elena? #cat
? ¿En qué calle están los pisos que quería alquilar Ana? #flat
? ¿De qué color son las bicicletas que quería comprar? #bike
? ¿Qué día son las citas con los dentistas? #dentist
? ¿Qué instrumento estudian las hijas de Pablo? #violin
? ¿A qué país viajó la familia con los trenes? #norway
? ¿Qué clase de panes ha horneado? #bread
? ¿Quién tenía que aprobar el examen? #exam
? ¿En qué hospitales trabajaron los hermanos? #nurse
? ¿De qué trataban las películas que querían ver? #whale
? ¿En qué día es la reunión? #meeting
? ¿A quién le ha prestado el libro? #book
? ¿De qué color se pintó la pared? #wall
? ¿Qué tipo de moneda coleccionó? #coin
? ¿De quién son los perros que ladraron? #dog
? ¿Qué jardines desean los padres? #garden
`;
const FRENCH = `
Anne: Je suis allergique aux arachides depuis toute petite. #peanut
Marc: Bonjour à tous, quand est-ce qu'on commence aujourd'hui ?
Hélène: Nos deux chats s'appellent Mia et Tom. #cat
Paul: Quelle journée, je suis très fatigué.
Anne: Depuis mars nous louons un appartement rue des Ormes. #flat
Marc: Quelqu'un sait où sont les clés ?
Marc: La semaine dernière je me suis acheté un vélo rouge. #bike
Hélène: C'est super, comment est-ce que tu as fait ?
Hélène: Mardi je dois aller chez le dentiste pour deux plombages. #dentist
Paul: Hier je n'étais pas là, qu'est-ce que vous avez fait ?
Paul: Ma fille étudie le violon depuis un an. #violin
Anne: Qu'est-ce qu'il fait froid dans ce bureau.
Anne: En juillet nous voyagerons en train en Norvège. #norway
Marc: Qui est-ce qui vient ce week-end ?
Marc: Le dimanche je prépare toujours un gâteau aux noix. #bread
Hélène: Je ne sais pas si c'est une bonne idée.
Hélène: Mon fils a réussi tous ses examens à l'université. #exam
Paul: Quelle heure est-il chez vous ?
Paul: Mon frère travaille comme infirmier dans un hôpital du nord. #nurse
Anne: Le temps est vraiment mauvais aujourd'hui.
Anne: Hier soir nous avons regardé un vieux film sur les baleines. #whale
Marc: Où est le chef aujourd'hui ?
Marc: Les réunions auront lieu désormais le vendredi à neuf heures. #meeting
Hélène: Qu'est-ce qu'il y a à manger à la cantine ?
Hélène: J'ai prêté mes livres de recettes à Pétra. #book
Paul: Quel bus passe encore à cette heure ?
Paul: Nous avons peint les murs de la cuisine en jaune. #wall
Anne: C'était quoi déjà le mot de passe ?
Anne: Le soir je ne bois plus de café, parce que je dors mal. #coffee
Marc: Quand est-ce que c'est enfin le week-end ?
Marc: Mon grand-père collectionnait des pièces anciennes de Perse. #coin
Hélène: Dans quelle salle est-ce que nous sommes ?
Hélène: Le chien de ma voisine aboie toutes les nuits. #dog
Paul: C'est quoi ce bruit, qui est-ce qui fait ça ?
Paul: Mes parents ont toujours souhaité un jardin au bord du lac. #garden
Anne: D'où est-ce que tu sors ça ?
Marc: Je n'ai envie de rien, qui est-ce qui rentre à la maison ?
Hélène: Pourquoi est-ce que la lumière est si faible dans ma chambre ?
Paul: Comment est-ce qu'on appelle ça en français ?
? Qui est-ce qui ne peut pas manger une arachide ? #peanut
? Comment est-ce que s'appelle le chat d'Hélène ? #cat
? Dans quelle rue sont les appartements qu'elle a loués ? #flat
? De quelle couleur sont les vélos qu'il voulait acheter ? #bike
? Quel jour est-ce qu'elle a vu les dentistes ? #dentist
? Quel instrument est-ce que les filles de Paul ont étudié ? #violin
? Dans quel pays est-ce que la famille a voyagé avec les trains ? #norway
? Quelle sorte de gâteaux est-ce qu'il a préparés ? #bread
? Qui devait réussir l'examen ? #exam
? Dans quels hôpitaux est-ce que les frères ont travaillé ? #nurse
? De quoi parlaient les films qu'ils voulaient regarder ? #whale
? Quel jour est-ce qu'il y a la réunion ? #meeting
? À qui est-ce qu'elle voulait prêter le livre ? #book
? De quelle couleur est le mur des cuisines ? #wall
? Quelle pièce ancienne est-ce qu'il a collectionnée ? #coin
? À qui sont les chiens qui aboyaient ? #dog
? Quels jardins est-ce que les parents souhaitent ? #garden
`;
const PORTUGUESE = `
Ana: Sou alérgica a amendoins desde pequena. #peanut
Rui: Bom dia a todos, quando é que começamos hoje?
Helena: Os nossos dois gatos chamam-se Mia e Tom. #cat
Paulo: Que dia, estou muito cansado.
Ana: Desde março alugamos um apartamento na rua do Carmo. #flat
Rui: Alguém sabe onde é que estão as chaves?
Rui: Na semana passada comprei uma bicicleta vermelha. #bike
Helena: Que bom, como é que fizeste isso?
Helena: Na terça tenho consulta com o dentista por causa de duas cáries. #dentist
Paulo: Ontem não estive cá, o que é que vocês fizeram?
Paulo: A minha filha estuda violino há um ano. #violin
Ana: Que frio que faz neste escritório.
Ana: Em julho viajaremos de comboio para a Noruega. #norway
Rui: Quem é que vem no fim de semana?
Rui: Aos domingos asso sempre um pão com nozes. #bread
Helena: Não sei se é uma boa ideia.
Helena: O meu filho passou em todos os exames da universidade. #exam
Paulo: Que horas são aí onde vocês estão?
Paulo: O meu irmão trabalha como enfermeiro num hospital do norte. #nurse
Ana: O tempo hoje está horrível.
Ana: Ontem à noite assistimos a um filme antigo sobre baleias. #whale
Rui: Onde é que está o chefe hoje?
Rui: As reuniões serão a partir de agora às sextas às nove. #meeting
Helena: O que é que há para comer na cantina?
Helena: Emprestei os meus livros de cozinha à Petra. #book
Paulo: Qual é o autocarro que ainda passa a esta hora?
Paulo: Pintamos de amarelo as paredes da entrada. #wall
Ana: Qual era mesmo a palavra-passe?
Ana: À noite já não bebo café, porque durmo mal. #coffee
Rui: Quando é que chega finalmente a sexta?
Rui: O meu avô colecionava moedas da Pérsia. #coin
Helena: Em que sala é que estamos hoje?
Helena: O cão da minha vizinha ladra todas as noites. #dog
Paulo: Que barulho é esse, quem é que o faz?
Paulo: Os meus pais sempre desejaram um jardim perto do lago. #garden
Ana: De onde é que tiraste isso?
Rui: Não me apetece nada, quem é que vem para casa?
Helena: Por que é que a luz do meu quarto está tão fraca?
Paulo: Como é que se chama isso em português?
? Quem é que não pode comer um amendoim? #peanut
? Como é que se chama o gato da Helena? #cat
? Em que rua ficam os apartamentos que ela queria alugar? #flat
? De que cor são as bicicletas que ele queria comprar? #bike
? Em que dia são as consultas com os dentistas? #dentist
? Que instrumento é que estudam as filhas do Paulo? #violin
? A que país é que a família viajou nos comboios? #norway
? Que tipo de pães é que ele tem assado? #bread
? Quem é que tinha de passar no exame? #exam
? Em que hospitais é que trabalharam os irmãos? #nurse
? De que tratavam os filmes a que queriam assistir? #whale
? Em que dia é que é a reunião? #meeting
? A quem é que ela tem emprestado o livro? #book
? De que cor é que foi pintada a parede? #wall
? Que tipo de moeda é que ele colecionou? #coin
? De quem são os cães que ladraram? #dog
? Que jardins é que os pais desejam? #garden
`;
const RUSSIAN = `
Аня: У меня с детства аллергия на орехи. #peanut
Макс: Всем доброе утро, когда мы сегодня начинаем?
Лена: Наших двух кошек зовут Мия и Том. #cat
Паша: Что за день, я так устал.
Аня: С марта мы снимаем квартиру на Садовой улице. #flat
Макс: Кто-нибудь знает, где ключи?
Макс: На прошлой неделе я купил себе красный велосипед. #bike
Лена: Здорово, и как ты это сделал?
Лена: Во вторник мне надо к зубному врачу, две пломбы. #dentist
Паша: Меня вчера не было, что вы делали?
Паша: Моя дочь уже год учится играть на скрипке. #violin
Аня: Как же холодно у нас в офисе.
Аня: В июле мы поедем на поезде в Норвегию. #norway
Макс: Кто у нас придёт в выходные?
Макс: По воскресеньям я всегда пеку пирог с яблоками. #bread
Лена: Я не знаю, хорошая ли это идея.
Лена: Мой сын сдал все экзамены в университете. #exam
Паша: Сколько у вас там времени?
Паша: Мой брат работает медбратом в городской больнице. #nurse
Аня: Погода сегодня просто ужасная.
Аня: Вчера мы посмотрели старый фильм про китов. #whale
Макс: Где у нас сегодня начальник?
Макс: Совещания теперь будут по пятницам в девять. #meeting
Лена: А что у нас сегодня в столовой?
Лена: Я отдала свои кулинарные книги Петре. #book
Паша: Какой автобус ещё ходит в это время?
Паша: Стены на кухне мы покрасили в жёлтый цвет. #wall
Аня: А какой у нас был пароль?
Аня: По вечерам я больше не пью кофе, от него плохо сплю. #coffee
Макс: Когда уже наконец выходные?
Макс: Мой дедушка собирал старинные монеты из Персии. #coin
Лена: В какой мы сегодня комнате?
Лена: Собака моей соседки лает каждую ночь. #dog
Паша: Что это за шум, кто это делает?
Паша: Мои родители всегда мечтали о саде у озера. #garden
Аня: Откуда ты это взял?
Макс: Мне ничего не хочется, кто со мной домой?
Лена: Почему у меня в комнате такой слабый свет?
Паша: Как это у вас называется?
? У кого нельзя с аллергией ни одного ореха? #peanut
? Как зовут кошку, которая у Лены? #cat
? На какой улице снимали квартиры? #flat
? Какого цвета велосипеды, которые хотел купить Макс? #bike
? В какой день приём у зубных врачей? #dentist
? На чём учатся играть дочери у Паши? #violin
? В какую страну ездили на поездах в июле? #norway
? С чем были пироги, которые он печёт? #bread
? Кто у нас должен был сдать экзамен? #exam
? В каких больницах работали братья? #nurse
? О чём были фильмы, которые смотрели? #whale
? В какой день у нас совещание? #meeting
? Кому она отдаст кулинарную книгу? #book
? В какой цвет покрашена стена кухни? #wall
? Откуда старинная монета, которую он собирает? #coin
? Чьи собаки у нас лаяли? #dog
? О каких садах мечтают родители? #garden
`;
const JAPANESE = `
花: 子どもの頃から落花生のアレルギーがあります。 #peanut
健: みなさんおはよう、今日はいつ始めますか？
美咲: うちの猫二匹はミアとトムという名前です。 #cat
翔: なんていう一日だ、とても疲れた。
花: 三月から楡通りにアパートを借りています。 #flat
健: 鍵がどこにあるか誰か知っていますか？
健: 先週、赤い自転車を買いました。 #bike
美咲: すごいですね、どうやってやったんですか？
美咲: 火曜日は歯医者に行って、詰め物を二つしてもらいます。 #dentist
翔: 昨日はいなかったけど、何をしましたか？
翔: 娘は一年前からバイオリンを習っています。 #violin
花: この事務所は本当に寒いですね。
花: 七月に電車でノルウェーへ旅行します。 #norway
健: 週末は誰が来ますか？
健: 日曜日はいつもくるみのパンを焼いています。 #bread
美咲: それがいい考えかどうか分かりません。
美咲: 息子が大学の試験に全部受かりました。 #exam
翔: そちらは何時ですか？
翔: 兄は北の病院で看護師として働いています。 #nurse
花: 今日の天気は本当にひどいです。
花: 昨夜、鯨の古い映画を見ました。 #whale
健: 今日、部長はどこにいますか？
健: 会議はこれから金曜日の九時になります。 #meeting
美咲: 食堂には何がありますか？
美咲: 料理の本をペトラさんに貸しました。 #book
翔: この時間にまだどのバスがありますか？
翔: 台所の壁を黄色に塗りました。 #wall
花: パスワードは何でしたか？
花: 夜はもうコーヒーを飲みません、眠れなくなるので。 #coffee
健: いつになったら週末になりますか？
健: 祖父はペルシャの硬貨を集めていました。 #coin
美咲: 今日はどの部屋にいますか？
美咲: 隣の人の犬が毎晩吠えています。 #dog
翔: これは何の音ですか、誰がやっていますか？
翔: 両親はずっと湖の近くの庭を欲しがっていました。 #garden
花: それはどこから持ってきましたか？
健: 何もする気がない、誰と家に帰ろうかな。
美咲: どうして私の部屋はこんなに暗いのですか？
翔: これは日本語でなんと言いますか？
? 落花生を食べられない人は誰ですか？ #peanut
? 美咲さんの猫は何という名前でしたか？ #cat
? どこにアパートを借りたのですか？ #flat
? 買いたかった自転車は何色でしたか？ #bike
? いつ歯医者に行きましたか？ #dentist
? 娘さんは何を習いたいと言っていましたか？ #violin
? 七月にどこへ旅行したのですか？ #norway
? どんなパンを焼きましたか？ #bread
? 誰が試験に受からなければなりませんか？ #exam
? お兄さんはどこの病院で働いていましたか？ #nurse
? どんな映画を見ましたか？ #whale
? 会議はいつですか？ #meeting
? 誰に料理の本を貸してあげましたか？ #book
? 台所の壁は何色に塗ってありますか？ #wall
? どこの硬貨を集めたのですか？ #coin
? 吠えたのは誰の犬でしたか？ #dog
? 両親が欲しい庭はどんな庭ですか？ #garden
`;

/** Events as of `EVENTS`, and questions with the name of what answers them. */
const parsed = (set: string) => {
  const lines = set
    .trim()
    .split('\n')
    .map((line) => /^(\?|[^:]+:) (.*?)(?: #(\w+))?$/.exec(line)!);
  return {
    events: lines.flatMap(([, source, text, name]) =>
      source === '?' ? [] : [{ source: source!.slice(0, -1), text: text!, name }],
    ),
    questions: lines.flatMap(([, source, text, name]) =>
      source === '?' ? [{ text: text!, name: name! }] : [],
    ),
  };
};

export const LANGUAGES = Object.entries({
  German: GERMAN,
  Spanish: SPANISH,
  French: FRENCH,
  Portuguese: PORTUGUESE,
  Russian: RUSSIAN,
  Japanese: JAPANESE,
}).map(([language, set]) => ({ language, ...parsed(set) }));
