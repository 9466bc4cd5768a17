//! Porter's stemmer (Porter 1980) with the extensions of NLTK, the default mode of its `PorterStemmer`.

/// Irregular words and their stems.
const IRREGULAR: [(&str, &str); 16] = [
    ("sky", "sky"),
    ("skies", "sky"),
    ("dying", "die"),
    ("lying", "lie"),
    ("tying", "tie"),
    ("news", "news"),
    ("innings", "inning"),
    ("inning", "inning"),
    ("outings", "outing"),
    ("outing", "outing"),
    ("cannings", "canning"),
    ("canning", "canning"),
    ("howe", "howe"),
    ("proceed", "proceed"),
    ("exceed", "exceed"),
    ("succeed", "succeed"),
];

/// Endings and their replacements. The first ending of a list that matches a word is decisive.
type Rules<'a> = &'a [(&'a str, &'a str)];

const STEP_1A: Rules = &[("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")];
const STEP_2: Rules = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("fulli", "ful"),
    ("logi", "log"),
];
const STEP_3: Rules = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];
/// Endings that are removed.
const STEP_4: [&str; 19] = [
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou",
    "ism", "ate", "iti", "ous", "ive", "ize",
];

/// The stem of a word, in lower case. Words of one or two letters are their own stems.
pub fn stem(word: &str) -> String {
    let lower = word.to_lowercase();
    if let Some((_, stem)) = IRREGULAR.iter().find(|(form, _)| *form == lower) {
        return (*stem).to_owned();
    }
    if word.chars().count() <= 2 {
        return lower;
    }
    let mut word: Vec<char> = lower.chars().collect();
    step_1a(&mut word);
    step_1b(&mut word);
    step_1c(&mut word);
    step_2(&mut word);
    apply(&mut word, STEP_3, |_, stem| measure(stem) > 0);
    apply(&mut word, &STEP_4.map(|ending| (ending, "")), |ending, stem| {
        measure(stem) > 1 && (ending != "ion" || matches!(stem.last(), Some('s' | 't')))
    });
    step_5(&mut word);
    word.into_iter().collect()
}

fn step_1a(word: &mut Vec<char>) {
    if word.len() == 4 && without(word, "ies").is_some() {
        word.truncate(3);
    } else {
        apply(word, STEP_1A, |_, _| true);
    }
}

fn step_1b(word: &mut Vec<char>) {
    if without(word, "ied").is_some() {
        // "died" becomes "die", but "spied" "spi".
        word.truncate(if word.len() == 4 { 3 } else { word.len() - 2 });
        return;
    }
    if let Some(stem) = without(word, "eed") {
        if measure(stem) > 0 {
            word.pop();
        }
        return;
    }
    let ending =
        ["ed", "ing"].into_iter().find(|ending| without(word, ending).is_some_and(has_vowel));
    let Some(ending) = ending else { return };
    word.truncate(word.len() - ending.len());
    if ["at", "bl", "iz"].iter().any(|ending| without(word, ending).is_some()) {
        word.push('e');
    } else if ends_in_double_consonant(word) {
        if !matches!(word.last(), Some('l' | 's' | 'z')) {
            word.pop();
        }
    } else if measure(word) == 1 && ends_in_short_syllable(word) {
        word.push('e');
    }
}

fn step_1c(word: &mut [char]) {
    let is_i = match word {
        [stem @ .., 'y'] => stem.len() > 1 && consonants(stem).last() == Some(&true),
        _ => false,
    };
    if let (true, Some(last)) = (is_i, word.last_mut()) {
        *last = 'i';
    }
}

fn step_2(word: &mut Vec<char>) {
    // Runs before the others, since the shortened word may have another of the endings.
    if without(word, "alli").is_some_and(|stem| measure(stem) > 0) {
        word.truncate(word.len() - 2);
    }
    apply(word, STEP_2, |ending, stem| match ending {
        // The "l" counts as part of the stem: "geol" for "geology".
        "logi" => measure(&[stem, &['l']].concat()) > 0,
        _ => measure(stem) > 0,
    });
}

fn step_5(word: &mut Vec<char>) {
    if let Some(stem) = without(word, "e") {
        let m = measure(stem);
        if m > 1 || (m == 1 && !ends_in_short_syllable(stem)) {
            word.pop();
        }
    }
    if without(word, "ll").is_some() && measure(&word[..word.len() - 1]) > 1 {
        word.pop();
    }
}

/// The part of the word before an ending of ASCII letters; `None` if the word does not have this ending.
fn without<'a>(word: &'a [char], ending: &str) -> Option<&'a [char]> {
    let (stem, last) = word.split_at_checked(word.len().checked_sub(ending.len())?)?;
    last.iter().copied().eq(ending.chars()).then_some(stem)
}

/// Replaces the first ending of the list that matches, if the condition holds for the ending and the part before it.
fn apply(word: &mut Vec<char>, rules: Rules, condition: impl Fn(&str, &[char]) -> bool) {
    for (ending, replacement) in rules {
        if let Some(stem) = without(word, ending) {
            if condition(ending, stem) {
                word.truncate(stem.len());
                word.extend(replacement.chars());
            }
            return;
        }
    }
}

/// Whether each letter is a consonant; "y" is one unless it follows a consonant.
fn consonants(word: &[char]) -> Vec<bool> {
    let mut flags = Vec::with_capacity(word.len());
    for letter in word {
        flags.push(match letter {
            'a' | 'e' | 'i' | 'o' | 'u' => false,
            'y' => flags.last() != Some(&true),
            _ => true,
        });
    }
    flags
}

/// Porter's measure: how often a consonant follows a vowel.
fn measure(stem: &[char]) -> usize {
    consonants(stem).windows(2).filter(|w| !w[0] && w[1]).count()
}

fn has_vowel(stem: &[char]) -> bool {
    consonants(stem).contains(&false)
}

fn ends_in_double_consonant(word: &[char]) -> bool {
    matches!(word, [.., a, b] if a == b) && consonants(word).last() == Some(&true)
}

/// Whether a word ends in a consonant, a vowel and a consonant other than w, x or y, or consists of a vowel and a consonant.
fn ends_in_short_syllable(word: &[char]) -> bool {
    match consonants(word).as_slice() {
        [.., true, false, true] => !matches!(word.last(), Some('w' | 'x' | 'y')),
        [false, true] => true,
        _ => false,
    }
}
