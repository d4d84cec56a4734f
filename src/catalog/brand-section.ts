import type { Environment } from "../base/environment-reader.ts";
import { type Brand, PLAIN_BRAND, type Seller, type Terms } from "./brand.ts";
import { createYamlReader, type YamlMap, type YamlReader } from "./yaml-reader.ts";
import { show, type YamlField } from "./yaml-scalars.ts";

export const BRAND_FIELDS = "name logo accent headline lead support terms seller privacy imprint".split(" ");
const NAME = /^[^\p{Cc}<>"]{1,40}$/u;
const LINE = /^[^\p{Cc}]{1,200}$/u;
const ADDRESS = /^(?:[^\p{Cc}]{0,100}(?:\n|$)){1,8}$/u;
const COLOR = /^#[0-9a-f]{6}$/i;
const VERSION = /^[A-Za-z0-9._-]{1,40}$/;
const MAIL_ADDRESS = /^[^\s@<>"]{1,64}@[^\s@<>"]{1,255}$/;
const LINK_CHARS_MAX = 500;

/** Reads `brand:`. Fields with a problem are null. */
export function readBrand(reader: YamlReader, field: YamlField): Brand {
	const map = reader.map(field, BRAND_FIELDS);
	if (map === undefined) return PLAIN_BRAND;
	const matching = (name: string, pattern: RegExp, rule: string) => textOf(reader, map, name, pattern, rule);
	return Object.freeze({
		name: matching("name", NAME, "must be 1 to 40 characters, without < > and quotes"),
		logo: matching("logo", LINE, "must be the path of a file"),
		accent: matching("accent", COLOR, "must be a colour such as #17637f")?.toLowerCase() ?? null,
		headline: matching("headline", LINE, "must be one line of at most 200 characters"),
		lead: matching("lead", LINE, "must be one line of at most 200 characters"),
		support: supportOf(reader, map),
		terms: termsOf(reader, map.get("terms")),
		seller: sellerOf(reader, map.get("seller")),
		privacy: linkOf(reader, map.get("privacy")),
		imprint: linkOf(reader, map.get("imprint")),
	});
}

/** Reads only the brand of a catalogue's text; other mistakes are reported elsewhere. */
export function parseBrand(text: string, env: Environment): Brand {
	const reader = createYamlReader(text, env);
	const field = reader.root && reader.map(reader.root, ["brand"], () => true)?.get("brand");
	return field === undefined ? PLAIN_BRAND : readBrand(reader, field);
}

function textOf(reader: YamlReader, map: YamlMap, name: string, pattern: RegExp, rule: string): string | null {
	const field = map.get(name);
	return (field && reader.text(field, pattern, rule)) ?? null;
}

function supportOf(reader: YamlReader, map: YamlMap): string | null {
	const field = map.get("support");
	const text = field && reader.text(field);
	if (field === undefined || text === undefined) return null;
	return MAIL_ADDRESS.test(text) ? `mailto:${text}` : linkOf(reader, field);
}

function termsOf(reader: YamlReader, field: YamlField | undefined): Terms | null {
	const map = field && reader.map(field, ["url", "version"]);
	if (map === undefined) return null;
	map.require("version");
	const url = linkOf(reader, map.require("url"));
	const version = textOf(reader, map, "version", VERSION, "must be 1 to 40 of letters, digits, . _ -");
	return url === null || version === null ? null : Object.freeze({ url, version });
}

function sellerOf(reader: YamlReader, field: YamlField | undefined): Seller | null {
	const map = field && reader.map(field, ["company", "address", "vat_id"]);
	if (map === undefined) return null;
	map.require("company");
	const company = textOf(reader, map, "company", LINE, "must be one line of at most 200 characters");
	const address = textOf(reader, map, "address", ADDRESS, "must be at most 8 lines of at most 100 characters");
	const vatId = textOf(reader, map, "vat_id", LINE, "must be one line of at most 200 characters");
	return Object.freeze({ company: company ?? "", address: (address ?? "").trim(), vatId: vatId ?? "" });
}

/** Accepts only http and https addresses: a `javascript:` link would be a script. */
function linkOf(reader: YamlReader, field: YamlField | undefined): string | null {
	const text = field && reader.text(field);
	if (field === undefined || text === undefined) return null;
	const url = text.length <= LINK_CHARS_MAX ? URL.parse(text) : null;
	if (url !== null && (url.protocol === "https:" || url.protocol === "http:")) return url.href;
	reader.report(field, `must be an address that begins with https://, not ${show(text)}`);
	return null;
}
