-- Text search in other languages than English: stems, stop words, and what the catalog says.
SELECT cfgname, dictname, string_agg(maptokentype::text, ',' ORDER BY maptokentype)
FROM pg_ts_config_map JOIN pg_ts_config c ON c.oid = mapcfg JOIN pg_ts_dict d ON d.oid = mapdict
WHERE cfgname IN ('simple', 'english', 'german', 'russian', 'tamil') GROUP BY 1, 2 ORDER BY 1, 2;
SELECT oid, dictname, dicttemplate, dictinitoption FROM pg_ts_dict
WHERE dictname ~ '^(simple|arabic|danish|dutch|english|finnish|french|german|greek|hungarian|italian|norwegian|portuguese|romanian|russian|spanish|swedish|tamil|turkish)' ORDER BY oid;
SELECT to_tsvector('arabic', 'الكتاب في المكتبة');
SELECT to_tsvector('danish', 'Hurtige brune ræve springer over de dovne hunde, og det er ikke alt');
SELECT to_tsvector('dutch', 'De snelle bruine vossen sprongen over de luie honden van mijn buren');
SELECT to_tsvector('finnish', 'Nopeat ruskeat ketut hyppäsivät laiskojen koirien yli eikä siinä ollut mitään');
SELECT to_tsvector('french', 'Les renards bruns et rapides ont sauté par-dessus les chiens paresseux; ils n''ont pas aimé ça');
SELECT to_tsvector('german', 'Die schnellen braunen Füchse sprangen über die faulen Hunde unserer Nachbarn, dass es eine Freude war');
SELECT to_tsvector('greek', 'Οι γρήγορες αλεπούδες πήδηξαν πάνω από τα σκυλιά');
SELECT to_tsvector('hungarian', 'A gyors barna rókák átugrották a lusta kutyákat, és ők először nem örültek');
SELECT to_tsvector('italian', 'Le veloci volpi marroni saltarono sopra i cani pigri dei nostri vicini');
SELECT to_tsvector('norwegian', 'De raske brune revene hoppet over de late hundene, og det var ikke alt');
SELECT to_tsvector('portuguese', 'As rápidas raposas marrons saltaram sobre os cães preguiçosos; isto é tudo');
SELECT to_tsvector('romanian', 'Vulpile rapide maro au sărit peste câinii leneși ai vecinilor noștri');
SELECT to_tsvector('russian', 'Быстрые лисицы прыгали через ленивых собак, и всё было зачтено: берётся. running databases');
SELECT to_tsvector('spanish', 'Los rápidos zorros marrones saltaron sobre los perros perezosos; vosotros no lo sabíais');
SELECT to_tsvector('swedish', 'De snabba bruna rävarna hoppade över de lata hundarna, och det var inte allt');
SELECT to_tsvector('tamil', 'புத்தகங்கள் நூலகத்தில்');
SELECT to_tsvector('turkish', 'Hızlı kahverengi tilkiler tembel köpeklerin üzerinden atladılar ve bu daha çok');
SELECT ts_lexize('german_stem', 'und'), ts_lexize('german_stem', 'unser'), ts_lexize('german_stem', 'unse'), ts_lexize('turkish_stem', 'leri');
SELECT to_tsquery('french', 'chiens & sauter'), plainto_tsquery('german', 'die Häuser der Nachbarn'), phraseto_tsquery('spanish', 'perros perezosos');
SELECT to_tsvector('french', 'les chats dorment') @@ to_tsquery('french', 'chat & dormir');
SELECT ts_headline('german', 'Die schnellen Füchse springen', to_tsquery('german', 'Fuchs'));
SET default_text_search_config = 'german';
SELECT to_tsvector('Häuser und Gärten'), get_current_ts_config();
RESET default_text_search_config;
SET default_text_search_config = 'klingon';
SELECT to_tsvector('klingon', 'x');
CREATE TABLE ts_languages (id int PRIMARY KEY, body text, words tsvector GENERATED ALWAYS AS (to_tsvector('french', body)) STORED);
INSERT INTO ts_languages VALUES (1, 'Les journaux du matin'), (2, 'Un cheval et des chevaux');
SELECT * FROM ts_languages WHERE words @@ to_tsquery('french', 'journal') ORDER BY id;
DROP TABLE ts_languages;
