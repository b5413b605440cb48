//! Imports between the files of one crate, read from its source.
//!
//! An edge leads from a file that names an item to the file that defines it. The rules:
//! - `mod child;` is no edge. A re-export (`pub use`, with any restriction) is no edge either; an import through
//!   a re-export leads to the file that defines the item.
//! - An import of a private `use` of another module leads to the definition as well.
//! - Paths in code count like `use`. In macro calls, sequences of identifiers joined by `::` count.
//! - Code under `#[cfg(test)]` does not count.
//!
//! Methods are not followed: calling a method of a value is no import.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{Attribute, Item, UseTree, Visibility};

/// Names of a module from the root of the crate.
type ModulePath = Vec<String>;

/// Longest chain of aliases that is followed. It bounds aliases that name each other.
const ALIASES_MAX: usize = 16;

/// One module: the file that holds it, and the names that it makes known.
struct Module {
    file: usize,
    defined: BTreeSet<String>,
    aliases: BTreeMap<String, ModulePath>,
    globs: Vec<ModulePath>,
}

/// A crate's source: files in the order of reading, modules by path, and edges between files.
pub(crate) struct Imports {
    /// Files, relative to the folder of the crate's root file.
    pub(crate) files: Vec<PathBuf>,
    /// Pairs of file numbers: the first imports the second.
    edges: BTreeSet<(usize, usize)>,
    modules: BTreeMap<ModulePath, Module>,
}

impl Imports {
    /// Reads a crate from its root file, such as `src/lib.rs`.
    ///
    /// # Errors
    ///
    /// A text that names the file that cannot be read or parsed.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let mut imports = Self { files: Vec::new(), edges: BTreeSet::new(), modules: BTreeMap::new() };
        let folder = root.parent().ok_or("the root file has no folder")?;
        let mut bodies = Vec::new();
        imports.read_file(folder, root, Vec::new(), &mut bodies)?;
        for (path, items) in &bodies {
            let mut found = Found { module: path.clone(), paths: Vec::new() };
            items.iter().for_each(|item| found.visit_item(item));
            let file = imports.modules[path].file;
            for path in found.paths {
                if let Some(target) = imports.resolve(&found.module, &path, 0)
                    && target != file
                {
                    imports.edges.insert((file, target));
                }
            }
        }
        Ok(imports)
    }

    /// Returns the groups of files that import each other in a circle, each sorted by name.
    pub(crate) fn circles(&self) -> Vec<Vec<&Path>> {
        let reach: Vec<BTreeSet<usize>> = (0..self.files.len()).map(|file| self.reachable(file)).collect();
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for file in 0..self.files.len() {
            let group: Vec<usize> =
                reach[file].iter().copied().filter(|other| reach[*other].contains(&file)).collect();
            if !group.is_empty() && seen.insert(group.clone()) {
                let mut names: Vec<&Path> = group.iter().map(|file| self.files[*file].as_path()).collect();
                names.sort();
                circles.push(names);
            }
        }
        circles
    }

    /// Returns the imports inside a group of files, as `from -> to` lines.
    pub(crate) fn edges_within(&self, group: &[&Path]) -> Vec<String> {
        let is_in = |file: usize| group.contains(&self.files[file].as_path());
        let found = self.edges.iter().filter(|(from, to)| is_in(*from) && is_in(*to));
        found.map(|(from, to)| self.line(*from, *to)).collect()
    }

    /// Returns the imports between two top-level modules of the crate in either direction, as `from -> to` lines.
    pub(crate) fn edges_between(&self, first: &str, second: &str) -> Vec<String> {
        [self.edges_from(first, second), self.edges_from(second, first)].concat()
    }

    /// Returns the imports of the top-level module `to` by the top-level module `from`, as `from -> to` lines.
    pub(crate) fn edges_from(&self, from: &str, to: &str) -> Vec<String> {
        let found = self.edges.iter().filter(|(one, other)| self.is_in(*one, from) && self.is_in(*other, to));
        found.map(|(from, to)| self.line(*from, *to)).collect()
    }

    /// Returns true if the crate has a top-level module of this name.
    pub(crate) fn has_module(&self, name: &str) -> bool {
        (0..self.files.len()).any(|file| self.is_in(file, name))
    }

    fn is_in(&self, file: usize, module: &str) -> bool {
        let top = self.files[file].iter().next();
        top.is_some_and(|top| Path::new(top).with_extension("") == Path::new(module))
    }

    fn line(&self, from: usize, to: usize) -> String {
        format!("{} -> {}", self.files[from].display(), self.files[to].display())
    }

    fn reachable(&self, from: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(file) = open.pop() {
            for (_, to) in self.edges.range((file, 0)..=(file, usize::MAX)) {
                if reached.insert(*to) {
                    open.push(*to);
                }
            }
        }
        reached
    }

    fn read_file(
        &mut self,
        folder: &Path,
        file: &Path,
        path: ModulePath,
        bodies: &mut Vec<(ModulePath, Vec<Item>)>,
    ) -> Result<(), String> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let parsed = syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        if is_test(&parsed.attrs) {
            return Ok(());
        }
        let number = self.files.len();
        self.files.push(file.strip_prefix(folder).unwrap_or(file).to_owned());
        let is_folder = path.is_empty() || file.file_stem().is_some_and(|stem| stem == "mod");
        let children = if is_folder { file.with_file_name("") } else { file.with_extension("") };
        self.add_module(folder, number, path, parsed.items, &children, bodies)
    }

    fn add_module(
        &mut self,
        folder: &Path,
        file: usize,
        path: ModulePath,
        items: Vec<Item>,
        children: &Path,
        bodies: &mut Vec<(ModulePath, Vec<Item>)>,
    ) -> Result<(), String> {
        let mut module =
            Module { file, defined: BTreeSet::new(), aliases: BTreeMap::new(), globs: Vec::new() };
        let mut kept = Vec::new();
        for item in items {
            if is_test(attributes(&item)) {
                continue;
            }
            match item {
                Item::Mod(child) => {
                    let name = child.ident.to_string();
                    let inner = [&path[..], std::slice::from_ref(&name)].concat();
                    if let Some((_, items)) = child.content {
                        self.add_module(folder, file, inner, items, &children.join(&name), bodies)?;
                    } else {
                        let flat = children.join(format!("{name}.rs"));
                        let nested = children.join(&name).join("mod.rs");
                        let source = if flat.exists() { flat } else { nested };
                        self.read_file(folder, &source, inner, bodies)?;
                    }
                }
                Item::Use(import) => {
                    add_aliases(&mut module, &import.tree);
                    kept.push(Item::Use(import));
                }
                item => {
                    module.defined.extend(defined_name(&item));
                    kept.push(item);
                }
            }
        }
        self.modules.insert(path.clone(), module);
        bodies.push((path, kept));
        Ok(())
    }

    /// Returns the file that defines what a path names, seen from a module. `None` for other crates' items, local
    /// names and modules themselves.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<usize> {
        if depth > ALIASES_MAX {
            return None;
        }
        let mut at = from.to_vec();
        let mut rest = path;
        while let Some(first) = rest.first() {
            match first.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => {
                    at.pop()?;
                }
                _ => break,
            }
            rest = &rest[1..];
        }
        loop {
            let name = rest.first()?;
            let child = [&at[..], std::slice::from_ref(name)].concat();
            if self.modules.contains_key(&child) {
                (at, rest) = (child, &rest[1..]);
                continue;
            }
            let module = self.modules.get(&at)?;
            if module.defined.contains(name) {
                return Some(module.file);
            }
            if let Some(alias) = module.aliases.get(name) {
                // `use x;` of an item and `use x::y as y` may name themselves from the same module.
                let target = [&alias[..], &rest[1..]].concat();
                return (target != path || at != from)
                    .then(|| self.resolve(&at, &target, depth + 1))
                    .flatten();
            }
            return module.globs.iter().find_map(|glob| {
                let target = [&glob[..], rest].concat();
                self.resolve(&at, &target, depth + 1)
            });
        }
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn defined_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Adds the names that a `use` makes known in its module.
fn add_aliases(module: &mut Module, tree: &UseTree) {
    leaves(tree, &mut Vec::new(), &mut |segments, name| match name {
        Some(name) => {
            module.aliases.insert(name, segments.to_vec());
        }
        None => module.globs.push(segments.to_vec()),
    });
}

/// Calls `leaf` with the path of each imported item and the name that it gets, or no name for a glob.
fn leaves(tree: &UseTree, prefix: &mut Vec<String>, leaf: &mut impl FnMut(&[String], Option<String>)) {
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            leaves(&path.tree, prefix, leaf);
            prefix.pop();
        }
        UseTree::Name(name) if name.ident == "self" => leaf(prefix, prefix.last().cloned()),
        UseTree::Name(name) => {
            prefix.push(name.ident.to_string());
            leaf(prefix, Some(name.ident.to_string()));
            prefix.pop();
        }
        UseTree::Rename(rename) => {
            let is_self = rename.ident == "self";
            if !is_self {
                prefix.push(rename.ident.to_string());
            }
            leaf(prefix, Some(rename.rename.to_string()));
            if !is_self {
                prefix.pop();
            }
        }
        UseTree::Glob(_) => leaf(prefix, None),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, prefix, leaf)),
    }
}

/// Paths that the code of one module names.
struct Found {
    module: ModulePath,
    paths: Vec<ModulePath>,
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        if matches!(import.vis, Visibility::Inherited) {
            leaves(&import.tree, &mut Vec::new(), &mut |segments, name| {
                if name.is_some() {
                    self.paths.push(segments.to_vec());
                }
            });
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.scan(call.tokens.clone());
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

impl Found {
    /// Finds paths in the tokens of a macro call.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons < 2 {
                        self.paths.push(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.scan(group.stream());
                    self.paths.push(std::mem::take(&mut path));
                    colons = 0;
                }
                _ => {
                    self.paths.push(std::mem::take(&mut path));
                    colons = 0;
                }
            }
        }
        self.paths.push(path);
    }
}
