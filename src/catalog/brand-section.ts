import type { Environment } from "../base/environment-reader.ts";
import { type Brand, DEFAULT_BRAND, type SellerDetails, type Terms } from "./brand.ts";
import { createYamlReader, quoteValue, type YamlField, type YamlReader } from "./yaml-reader.ts";

export const BRAND_FIELDS = "name logo accent headline lead support terms seller privacy imprint".split(" ");
const NAME = /^[^\p{Cc}<>"]{1,40}$/u;
const LINE = /^[^\p{Cc}]{1,200}$/u;
const LINE_RULE = "must be one line of at most 200 characters";
const ADDRESS = /^(?:[^\p{Cc}]{0,100}(?:\n|$)){1,8}$/u;
const COLOR = /^#[0-9a-f]{6}$/i;
const VERSION = /^[A-Za-z0-9._-]{1,40}$/;
const MAIL_ADDRESS = /^[^\s@<>"]{1,64}@[^\s@<>"]{1,255}$/;
const LINK_CHARS_MAX = 500;

/** Reads `brand:`. A field with a mistake becomes null, and the reader records the mistake. */
export function readBrand(reader: YamlReader, field: YamlField | undefined): Brand {
	const map = reader.map(field, BRAND_FIELDS);
	if (map === undefined) return DEFAULT_BRAND;
	const matching = (name: string, pattern: RegExp, rule: string) => reader.text(map.get(name), pattern, rule) ?? null;
	return Object.freeze({
		name: matching("name", NAME, "must be 1 to 40 characters, without < > and quotes"),
		logo: matching("logo", LINE, "must be the path of a file"),
		accent: matching("accent", COLOR, "must be a colour such as #17637f")?.toLowerCase() ?? null,
		headline: matching("headline", LINE, LINE_RULE),
		lead: matching("lead", LINE, LINE_RULE),
		support: supportOf(reader, map.get("support")),
		terms: termsOf(reader, map.get("terms")),
		seller: sellerOf(reader, map.get("seller")),
		privacy: linkOf(reader, map.get("privacy")),
		imprint: linkOf(reader, map.get("imprint")),
	});
}

/** Reads only the brand from the text of a `tollgate.yaml`; mistakes in other sections are ignored. */
export function parseBrand(text: string, env: Environment): Brand {
	const reader = createYamlReader(text, env);
	return readBrand(reader, reader.map(reader.root, ["brand"], () => true)?.get("brand"));
}

function supportOf(reader: YamlReader, field: YamlField | undefined): string | null {
	const text = reader.text(field);
	if (text === undefined) return null;
	return MAIL_ADDRESS.test(text) ? `mailto:${text}` : linkOf(reader, field);
}

function termsOf(reader: YamlReader, field: YamlField | undefined): Terms | null {
	const map = reader.map(field, ["url", "version"]);
	if (map === undefined) return null;
	const url = linkOf(reader, map.require("url"));
	const version = reader.text(map.require("version"), VERSION, "must be 1 to 40 of letters, digits, . _ -");
	return url === null || version === undefined ? null : Object.freeze({ url, version });
}

function sellerOf(reader: YamlReader, field: YamlField | undefined): SellerDetails | null {
	const map = reader.map(field, ["company", "address", "vat_id"]);
	if (map === undefined) return null;
	const company = reader.text(map.require("company"), LINE, LINE_RULE) ?? "";
	const addressRule = "must be at most 8 lines of at most 100 characters";
	const address = reader.text(map.get("address"), ADDRESS, addressRule)?.trim() ?? "";
	const vatId = reader.text(map.get("vat_id"), LINE, LINE_RULE) ?? "";
	return Object.freeze({ company, address, vatId });
}

/** Accepts only http and https links, because a `javascript:` link would run a script. */
function linkOf(reader: YamlReader, field: YamlField | undefined): string | null {
	const text = reader.text(field);
	if (field === undefined || text === undefined) return null;
	const url = text.length <= LINK_CHARS_MAX ? URL.parse(text) : null;
	if (url !== null && (url.protocol === "https:" || url.protocol === "http:")) return url.href;
	reader.report(field, `must be an address that begins with https://, not ${quoteValue(text)}`);
	return null;
}
