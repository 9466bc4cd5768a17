//! Captions of widgets: the vocabulary and the paraphrases of each kind of caption.

use std::sync::LazyLock;

/// Token of a word that is not in the vocabulary.
const UNKNOWN: usize = 2;
/// Number of context words, which texts on a screen show.
pub const CONTEXT_WORDS: usize = 16;
/// Maximum number of tokens of a generated caption, without the end token.
pub const MAX_CAPTION_TOKENS: usize = 7;

const SPECIAL: [&str; 4] = ["<pad>", "<end>", "<unknown>", "<start>"];
const CONTEXT: [&str; CONTEXT_WORDS] = [
    "music", "email", "phone", "address", "city", "name", "weather", "news", "travel", "location",
    "profile", "calendar", "password", "payment", "birthday", "backup",
];
/// No layout uses "fifth" and "sixth"; a model can predict them wrongly.
const ORDINALS: [&str; 6] = ["first", "second", "third", "fourth", "fifth", "sixth"];
const LAST: [&str; 1] = ["last"];
const COLUMNS: [&str; 5] = ["leftmost", "left", "middle", "right", "rightmost"];
const KEYS: [&str; 12] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "star", "zero", "hash",
];
const NOUNS: &str = "app arrow back backward bar choice content dialog entry field form forward friends image \
    input item key list loop menu option options order page picture playback request row \
    screen setting someone something song songs tab track window";
const VERBS: &str = "accept agree allow cancel choose close confirm continue decide delete dial disable \
    dismiss enable enter erase fill find finish go open pause pick play postpone press \
    reject remind remove repeat return search select send share show shuffle skip start \
    submit switch toggle turn type view";
const ATTRIBUTES: &str = "earlier here later more next previous random up";
const RELATIONS: &str = "about from in of to with";
const FILLERS: &str = "a and me off on or the this your";

static VOCABULARY: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    // Context words come first, then the other slot words.
    let slots = [&SPECIAL[..], &CONTEXT, &ORDINALS, &LAST, &COLUMNS, &KEYS].concat();
    let phrases = [NOUNS, VERBS, ATTRIBUTES, RELATIONS, FILLERS];
    slots.into_iter().chain(phrases.into_iter().flat_map(|words| words.split(' '))).collect()
});

/// Words of captions by token: padding, end, unknown, start, the context words, the other words of slots, then those of
/// fixed phrases.
pub fn screen_vocabulary() -> &'static [&'static str] {
    &VOCABULARY
}

/// Token of a node's context word, 1, …, [`CONTEXT_WORDS`].
pub fn context_token(word: usize) -> usize {
    match word {
        1..=CONTEXT_WORDS => SPECIAL.len() - 1 + word,
        _ => UNKNOWN,
    }
}

const FIRST_ORDINAL: usize = SPECIAL.len() + CONTEXT_WORDS;
const FIRST_COLUMN: usize = FIRST_ORDINAL + ORDINALS.len() + LAST.len();
const FIRST_KEY: usize = FIRST_COLUMN + COLUMNS.len();

/// Token of "first" at 0, and so on to "sixth".
pub(super) fn ordinal(index: usize) -> usize {
    FIRST_ORDINAL + index.min(ORDINALS.len() - 1)
}

/// The ordinal of one of `count` things, or "last".
pub(super) fn ordinal_or_last(index: usize, count: usize) -> usize {
    if index + 1 == count { FIRST_ORDINAL + ORDINALS.len() } else { ordinal(index) }
}

/// Token for a column out of 2, 3 or 4.
pub(super) fn column(index: usize, count: usize) -> usize {
    let names: &[usize] = match count {
        2 => &[1, 3],
        3 => &[1, 2, 3],
        _ => &[0, 1, 3, 4],
    };
    FIRST_COLUMN + names[index.min(names.len() - 1)]
}

/// Token of a key by its place in the keypad, row by row.
pub(super) fn key(index: usize) -> usize {
    FIRST_KEY + index.min(KEYS.len() - 1)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptionKind {
    pub name: &'static str,
    /// Whether the caption contains the word of a text elsewhere on the screen.
    pub copies: bool,
    /// The paraphrases; `*` marks a slot.
    pub(super) phrases: &'static [&'static str],
}

/// Kinds of captions: the function of a widget, the name, whether it copies a word, the paraphrases.
macro_rules! kinds {
    ($($caption:ident $name:literal $copies:literal [$($phrase:literal),*];)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Caption {
            $($caption,)*
        }

        static KINDS: &[CaptionKind] = &[
            $(CaptionKind { name: $name, copies: $copies, phrases: &[$($phrase),*] },)*
        ];
    };
}

// No fixed phrase contains a slot's word, which the metric would count as a correct slot.
kinds! {
    Back "back" false ["go back", "go up", "return to the earlier screen", "back arrow"];
    More "more" false ["more options", "show more options", "open the menu", "view the menu"];
    Search "search" false ["search", "search the app", "find something", "open the search bar"];
    Share "share" false ["share this page", "share with friends", "send to someone", "share content"];
    Tab "tab" false ["open the * tab", "go to * tab", "switch to the * tab", "* tab"];
    Previous "previous" false ["previous track", "play the previous track", "skip backward", "go to previous song"];
    Play "play" false ["play", "play the song", "start or pause playback", "start or pause song"];
    Next "next" false ["next track", "play the next track", "skip forward", "go to next song"];
    Shuffle "shuffle" false ["shuffle the songs", "toggle shuffle", "play in random order"];
    Repeat "repeat" false ["repeat the songs", "toggle repeat", "play in a loop"];
    Sheet "sheet" false ["choose the * option", "pick * choice", "select the * choice", "* option"];
    Delete "delete" true ["delete *", "remove * from the list", "erase the * entry", "delete the * item"];
    Item "item" false ["open the * item", "view * item in list", "select the * row", "* item"];
    Setting "setting" true ["turn on *", "enable or disable *", "toggle * setting", "switch * on or off"];
    Field "field" true ["enter your *", "type * here", "* input field", "fill in your *"];
    Submit "submit" false ["submit", "submit the form", "send the form", "finish and continue"];
    Image "image" false ["open * image in * row", "view the * image in * row", "* picture of the * row", "show * picture in * row"];
    Key "key" false ["press *", "press the * key", "dial *", "* key"];
    Cancel "cancel" true ["cancel the *", "dismiss the * dialog", "reject the * request"];
    Accept "accept" true ["accept the *", "agree to the *", "allow *", "confirm the * request"];
    Later "later" true ["decide about * later", "postpone the *", "remind me about * later", "postpone the * request"];
    Close "close" false ["close the dialog", "close this window", "close the dialog window"];
}

/// The kinds of captions, as [`Widget::kind`](super::Widget::kind) counts them.
pub fn caption_kinds() -> &'static [CaptionKind] {
    KINDS
}

/// All paraphrases of a kind with these tokens in the slots, in the slots' order.
pub(super) fn captions(kind: Caption, slots: &[usize]) -> Vec<Vec<usize>> {
    let fill = |phrase: &&str| {
        let mut slots = slots.iter().copied();
        let token = |word: &str| match word {
            "*" => slots.next().unwrap_or(UNKNOWN),
            word => {
                let same = |entry: &&str| *entry == word;
                VOCABULARY.iter().position(same).unwrap_or(UNKNOWN)
            }
        };
        phrase.split(' ').map(token).collect()
    };
    KINDS[kind as usize].phrases.iter().map(fill).collect()
}

/// The words of a caption; invalid tokens appear as `<unknown>`.
pub fn caption_text(caption: &[usize]) -> String {
    let word = |&token: &usize| *VOCABULARY.get(token).unwrap_or(&SPECIAL[UNKNOWN]);
    caption.iter().map(word).collect::<Vec<_>>().join(" ")
}
