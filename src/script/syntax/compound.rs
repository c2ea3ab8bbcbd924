//! Compound commands: groups, conditions, loops, functions.

use std::rc::Rc;

use super::{ReadStep, ShellText};
use crate::limits;
use crate::script::tree::{List, PipelineStage, Problem, ShellWord, StageKind, WordPart};

impl ShellText<'_> {
    /// Returns true if a compound command begins here.
    pub(super) fn is_compound(&mut self) -> bool {
        let opening = ["if", "for", "select", "while", "until", "case", "{", "[["];
        self.peek() == Some(b'(') || self.keyword().is_some_and(|(word, _)| opening.contains(&word))
    }

    /// A compound command with its redirections.
    pub(super) fn compound_stage(&mut self) -> ReadStep<PipelineStage> {
        let kind = self.compound()?;
        Ok(PipelineStage { kind, redirects: self.redirects()? })
    }

    fn compound(&mut self) -> ReadStep<StageKind> {
        if self.peek() == Some(b'(') {
            return self.parenthesis();
        }
        let Some((word, end)) = self.keyword() else { return Err(Problem::Syntax) };
        self.at = end;
        match word {
            "{" => self.braces().map(StageKind::Group),
            "if" => self.conditional(),
            "while" | "until" => {
                let condition = self.full_list()?;
                Ok(StageKind::Loop(vec![condition, self.do_block()?]))
            }
            "for" if self.is_arithmetic_head() => self.arithmetic_loop(),
            "for" | "select" => self.loop_over_words(),
            "case" => self.case(),
            "[[" => self.test(),
            _ => Err(Problem::Syntax),
        }
    }

    /// `( … )`, or `(( … ))` if it ends with two parentheses.
    fn parenthesis(&mut self) -> ReadStep<StageKind> {
        if self.starts(b"((").is_some()
            && let Some(expression) = self.double_parenthesis()?
        {
            return Ok(StageKind::Arithmetic { expression, body: List::new() });
        }
        self.expect(b"(")?;
        let list = self.full_list()?;
        self.expect(b")")?;
        Ok(StageKind::Subshell(list))
    }

    /// Reads `((…))`; nothing if the parentheses do not end together.
    pub(super) fn double_parenthesis(&mut self) -> ReadStep<Option<ShellWord>> {
        let Some(start) = self.starts(b"((") else { return Ok(None) };
        let end = self.matching(start, b')')?;
        if self.text.get(end + 1) != Some(&b')') {
            return Ok(None);
        }
        let inner = &self.text[start..end];
        let parts = self.within(inner, |text| text.expanded(None))?;
        self.at = end + 2;
        Ok(Some(ShellWord { parts }))
    }

    fn braces(&mut self) -> ReadStep<List> {
        let list = self.full_list()?;
        self.expect_keyword("}")?;
        Ok(list)
    }

    fn conditional(&mut self) -> ReadStep<StageKind> {
        let mut lists = vec![self.full_list()?];
        self.expect_keyword("then")?;
        loop {
            lists.push(self.full_list()?);
            if self.take_keyword("elif") {
                lists.push(self.full_list()?);
                self.expect_keyword("then")?;
            } else if self.take_keyword("else") {
                lists.push(self.full_list()?);
                self.expect_keyword("fi")?;
                break;
            } else {
                self.expect_keyword("fi")?;
                break;
            }
        }
        Ok(StageKind::If(lists))
    }

    fn do_block(&mut self) -> ReadStep<List> {
        self.newlines()?;
        if self.take_keyword("{") {
            return self.braces();
        }
        self.expect_keyword("do")?;
        let list = self.full_list()?;
        self.expect_keyword("done")?;
        Ok(list)
    }

    fn is_arithmetic_head(&mut self) -> bool {
        self.blanks();
        self.starts(b"((").is_some()
    }

    fn arithmetic_loop(&mut self) -> ReadStep<StageKind> {
        let expression = self.double_parenthesis()?.ok_or(Problem::Syntax)?;
        self.blanks();
        self.take(b";");
        Ok(StageKind::Arithmetic { expression, body: self.do_block()? })
    }

    fn loop_over_words(&mut self) -> ReadStep<StageKind> {
        self.blanks();
        let name = self.word()?.ok_or(Problem::Syntax)?;
        let name = name.literal().unwrap_or_default();
        self.blanks();
        if self.take(b";") {
            return Ok(StageKind::For { name, words: vec![ShellWord::all_arguments()], body: self.do_block()? });
        }
        self.newlines()?;
        if !self.take_keyword("in") {
            return Ok(StageKind::For { name, words: vec![ShellWord::all_arguments()], body: self.do_block()? });
        }
        let mut words = Vec::new();
        loop {
            self.blanks();
            match self.word()? {
                Some(word) => words.push(word),
                None => break,
            }
        }
        if !self.take(b";") && self.peek() != Some(b'\n') {
            return Err(Problem::Syntax);
        }
        Ok(StageKind::For { name, words, body: self.do_block()? })
    }

    fn case(&mut self) -> ReadStep<StageKind> {
        self.blanks();
        let subject = self.word()?.ok_or(Problem::Syntax)?;
        self.newlines()?;
        self.expect_keyword("in")?;
        let mut arms = Vec::new();
        loop {
            self.newlines()?;
            if self.take_keyword("esac") {
                return Ok(StageKind::Case { subject, arms });
            }
            self.take(b"(");
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                patterns.push(self.word()?.ok_or(Problem::Syntax)?);
                self.blanks();
                if !self.take(b"|") {
                    break;
                }
            }
            self.expect(b")")?;
            arms.push((patterns, self.list()?));
            self.blanks();
            if !(self.take(b";;&") || self.take(b";;") || self.take(b";&")) {
                self.expect_keyword("esac")?;
                return Ok(StageKind::Case { subject, arms });
            }
        }
    }

    /// `function name [()] body`.
    pub(super) fn function(&mut self) -> ReadStep<PipelineStage> {
        self.blanks();
        let name = self.word()?.ok_or(Problem::Syntax)?;
        self.blanks();
        if self.starts(b"((").is_none() && self.take(b"(") {
            self.expect(b")")?;
        }
        self.function_body(&name)
    }

    /// `name () body`; the name has been read.
    pub(super) fn function_behind(&mut self, name: &ShellWord) -> ReadStep<PipelineStage> {
        self.expect(b"(")?;
        self.expect(b")")?;
        self.function_body(name)
    }

    fn function_body(&mut self, name: &ShellWord) -> ReadStep<PipelineStage> {
        self.newlines()?;
        if !self.is_compound() {
            return Err(Problem::Syntax);
        }
        let body = Rc::new(self.deeper(Self::compound_stage)?);
        let name = name.literal().unwrap_or_default();
        Ok(PipelineStage { kind: StageKind::Function { name, body }, redirects: Vec::new() })
    }

    /// `coproc [name] command`. Only a compound command may have a name.
    pub(super) fn coprocess(&mut self) -> ReadStep<PipelineStage> {
        self.blanks();
        let before = self.at;
        let rest = &self.text[self.at..self.text.len().min(self.at + limits::SCRIPT_LOOKAHEAD_BYTES)];
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        self.budget.steps += length as u64;
        self.at += length;
        self.blanks();
        if length == 0 || self.at == before + length || !self.is_compound() {
            self.at = before;
        }
        let body = Box::new(self.stage()?);
        Ok(PipelineStage { kind: StageKind::Coprocess(body), redirects: Vec::new() })
    }
}

impl ShellWord {
    /// `"$@"`, the words of a loop without words.
    fn all_arguments() -> Self {
        use crate::script::tree::{Change, Quoting};
        let name = b"@".to_vec();
        let all = WordPart::Variable { name, quoting: Quoting::Quoted, change: Change::None, inner: Vec::new() };
        Self { parts: vec![all] }
    }
}
