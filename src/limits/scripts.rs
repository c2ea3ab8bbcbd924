//! The bounds of reading a command's text as shell.

/// Code that is read for one command, bytes: the text, and what it has in its arguments. What is longer is opaque.
pub const SCRIPT_BYTES_MAX: usize = 1 << 20;
/// Leaves of one command. One more is opaque, and stands for all further ones.
pub const SCRIPT_LEAVES_MAX: usize = 4_096;
/// Words and parts of words of one command, which bounds the memory that reading takes. Beyond it the rest is opaque.
pub const SCRIPT_PARTS_MAX: usize = 32_768;
/// Code that is read to find out whether a command is fed, bytes, and its words and parts of words. The host reads it, and
/// others wait meanwhile: for about 5 ms at most. What has more counts as fed.
pub const FED_BYTES_MAX: usize = 128 << 10;
/// See [`FED_BYTES_MAX`].
pub const FED_PARTS_MAX: usize = 4_096;
/// Groups, substitutions and quotes within each other. What is deeper does not get read, and its line is opaque.
pub const SCRIPT_DEPTH_MAX: u32 = 40;
/// Code in arguments within code in arguments. What is deeper is opaque.
pub const SCRIPT_LAYERS_MAX: usize = 12;
/// How far the search for the end of a keyword, a descriptor's number or a variable's name before a redirection looks,
/// bytes. What is longer is a word.
pub const SCRIPT_LOOKAHEAD_BYTES: usize = 512;
/// Here-documents that one line may begin, as in bash.
pub const SCRIPT_HERE_DOCUMENTS_MAX: usize = 16;
/// Turns of a text's loops over known words that are read one by one. Of further ones the word is not known.
pub const SCRIPT_TURNS_MAX: usize = 64;
/// Words that the braces of a text make. Further braces are patterns that are not known.
pub const SCRIPT_BRACES_MAX: usize = 256;
/// A word with braces, bytes and parts. The braces of a longer one are a pattern that is not known.
pub const SCRIPT_BRACES_UNITS_MAX: usize = 1_024;
/// Variables of a text whose values are followed. The values of further ones are not known.
pub const SCRIPT_VARIABLES_MAX: usize = 256;
/// The longest value that is followed, bytes. A longer one is not known.
pub const SCRIPT_VALUE_BYTES_MAX: usize = 4 << 10;
/// Brackets and quotes within each other where the end of arithmetic or of a subscript is searched. With more, the line is
/// opaque.
pub const SCRIPT_BRACKETS_MAX: usize = 512;
/// Settings of git in its environment that are read. Further ones do not count.
pub const SCRIPT_GIT_SETTINGS_MAX: usize = 4;
/// Layers in front of one program. What is behind further ones is opaque.
pub const SCRIPT_VIA_MAX: usize = 24;
/// The work for the leaves of one command: bytes copied into arguments and values, and the weights below. With more, one
/// opaque leaf stands for all further ones.
pub const SCRIPT_WEIGHT_MAX: usize = 4 << 20;
/// The bytes of a text for which room for one leaf is made at once. With more leaves, there is made more room.
pub const SCRIPT_LEAF_BYTES: usize = 32;
/// The weight of each command in a text, every time that it is looked at.
pub const SCRIPT_COMMAND_WEIGHT: usize = 256;
/// The weight of each change of a variable, every time that it is made or looked at.
pub const SCRIPT_CHANGE_WEIGHT: usize = 64;
