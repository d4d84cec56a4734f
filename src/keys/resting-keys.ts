import { assert } from "../base/assert.ts";
import type { KeyDigest } from "./digest.ts";
import type { AccountFields, KeyFields } from "./key-entry.ts";
import { accountFieldsAfter, keyFieldsAfter } from "./key-entry.ts";
import { RecordIndex } from "./record-index.ts";
import { RecordPages } from "./record-pages.ts";
import { SharedTexts } from "./shared-texts.ts";

/** A key as it was read, with the newest control entries that its fields and its account's reflect. */
export interface RestingKey {
	readonly digest: KeyDigest;
	readonly seq: number;
	readonly fields: KeyFields;
	readonly accountSeq: number;
	readonly account: AccountFields;
}

/**
 * Keys that nobody has used for a while: up to date as all others, but as 140 bytes outside of the heap instead of a
 * thousand in it. What few have of their own (settings, names of more than 23 bytes) is kept once for all that share it.
 * A key of a project does not rest.
 */
export interface RestingKeys {
	/**
	 * Takes the key in; the one that has lain longest at its place goes if there are as many as there may be. False if its
	 * ids are none of ours: then it cannot be kept here.
	 */
	put(key: RestingKey): boolean;
	/** Takes the key out, if it is here. */
	take(digest: KeyDigest): RestingKey | undefined;
	/** A control entry about a key. False if it is not here. */
	applyKey(id: string, seq: number, fields: KeyFields): boolean;
	/** A control entry about an account, whether any of its keys is here or not. */
	applyAccount(id: string, seq: number, fields: AccountFields): void;
	clear(): void;
	size(): number;
}

/** Words of a key's record; a number of 64 bits takes two. */
const [DIGEST, ID, ACCOUNT, SETTINGS, SEQ, NAME, KEY_WORDS] = [0, 8, 12, 13, 14, 16, 22];
/** Words of an account's. */
const [ACCOUNT_ID, ACCOUNT_SETTINGS, ACCOUNT_SEQ, KEYS, ACCOUNT_WORDS] = [0, 4, 5, 7, 8];
/** A byte for its length stands before a name. */
const NAME_BYTES_MAX = (KEY_WORDS - NAME) * 4 - 1;
/** The name is no name but the number of a text. */
const LONG_NAME = 255;
const KEY_ID = /^key_[0-9a-f]{32}$/;
const ACCOUNT_ID_FORM = /^acc_[0-9a-f]{32}$/;
const DIGEST_FORM = /^[0-9a-f]{64}$/;
const ID_DIGITS_AT = 4;
const WORD = 2 ** 32;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
/** What is looked for; there is one look-up at a time. */
const sought = new Uint32Array(8);

export function createRestingKeys(restingMax: number): RestingKeys {
	let keys = new RecordPages(KEY_WORDS);
	let accounts = new RecordPages(ACCOUNT_WORDS);
	let texts = new SharedTexts();
	let byDigest = new RecordIndex((key) => keys.get(key, DIGEST));
	// The last word of an id is random.
	let byId = new RecordIndex((key) => keys.get(key, ID + 3));
	let byAccount = new RecordIndex((account) => accounts.get(account, ACCOUNT_ID + 3));
	/** Where room is made next. */
	let hand = 0;

	const hasDigest = (key: number) => isAt(keys, key, DIGEST, 8);
	const hasId = (key: number) => isAt(keys, key, ID, 4);
	const hasAccountId = (account: number) => isAt(accounts, account, ACCOUNT_ID, 4);

	function findDigest(digest: string): number {
		seek(digest, 0, 8);
		return byDigest.find(sought[0] as number, hasDigest);
	}

	function findAccount(id: string): number {
		seek(id, ID_DIGITS_AT, 4);
		return byAccount.find(sought[3] as number, hasAccountId);
	}

	function setFields(key: number, seq: number, fields: KeyFields): void {
		const { id: _id, accountId: _accountId, name, ...settings } = fields;
		keys.set(key, SETTINGS, texts.hold(JSON.stringify(settings)));
		setNumber(keys, key, SEQ, seq);
		const bytes = keys.bytes(key, NAME, NAME_BYTES_MAX + 1);
		const { read, written } = encoder.encodeInto(name, bytes.subarray(1));
		bytes[0] = read === name.length ? written : LONG_NAME;
		if (read !== name.length) keys.set(key, NAME + 1, texts.hold(name));
	}

	function fieldsOf(key: number): KeyFields {
		const bytes = keys.bytes(key, NAME, NAME_BYTES_MAX + 1);
		const length = bytes[0] as number;
		return {
			...(JSON.parse(texts.text(keys.get(key, SETTINGS))) as Omit<KeyFields, "id" | "accountId" | "name">),
			id: `key_${hexAt(keys, key, ID)}`,
			accountId: `acc_${hexAt(accounts, keys.get(key, ACCOUNT), ACCOUNT_ID)}`,
			name: length === LONG_NAME ? texts.text(keys.get(key, NAME + 1)) : decoder.decode(bytes.subarray(1, 1 + length)),
		};
	}

	function releaseFields(key: number): void {
		texts.release(keys.get(key, SETTINGS));
		if (keys.bytes(key, NAME, 1)[0] === LONG_NAME) texts.release(keys.get(key, NAME + 1));
	}

	function setAccount(account: number, seq: number, fields: AccountFields): void {
		if (seq <= numberAt(accounts, account, ACCOUNT_SEQ)) return;
		const before = accounts.get(account, ACCOUNT_SETTINGS);
		const after = accountFieldsAfter(JSON.parse(texts.text(before)) as AccountFields, fields);
		texts.release(before);
		accounts.set(account, ACCOUNT_SETTINGS, texts.hold(JSON.stringify(after)));
		setNumber(accounts, account, ACCOUNT_SEQ, seq);
	}

	function enterAccount(id: string, seq: number, fields: AccountFields): number {
		let account = findAccount(id);
		if (account < 0) {
			account = accounts.take();
			for (let word = 0; word < 4; word++) accounts.set(account, ACCOUNT_ID + word, sought[word] as number);
			accounts.set(account, ACCOUNT_SETTINGS, texts.hold(JSON.stringify(fields)));
			setNumber(accounts, account, ACCOUNT_SEQ, seq);
			byAccount.add(account);
		} else setAccount(account, seq, fields);
		accounts.set(account, KEYS, accounts.get(account, KEYS) + 1);
		return account;
	}

	function leaveAccount(account: number): void {
		const left = accounts.get(account, KEYS) - 1;
		accounts.set(account, KEYS, left);
		if (left > 0) return;
		byAccount.remove(account);
		texts.release(accounts.get(account, ACCOUNT_SETTINGS));
		accounts.free(account);
	}

	function remove(key: number): void {
		byDigest.remove(key);
		byId.remove(key);
		releaseFields(key);
		leaveAccount(keys.get(key, ACCOUNT));
		keys.free(key);
	}

	/** Of all that there may be none is free: whose number comes next goes. */
	function makeRoom(): void {
		assert(keys.count === keys.end, "numbers are used again before there are more");
		hand = hand >= keys.end ? 0 : hand;
		remove(hand);
		hand += 1;
	}

	return {
		put({ digest, seq, fields, accountSeq, account }) {
			if (!DIGEST_FORM.test(digest) || !KEY_ID.test(fields.id) || !ACCOUNT_ID_FORM.test(fields.accountId)) return false;
			assert(findDigest(digest) < 0, "a key rests once");
			if (keys.count >= restingMax) makeRoom();
			const key = keys.take();
			keys.set(key, ACCOUNT, enterAccount(fields.accountId, accountSeq, account));
			seek(digest, 0, 8);
			for (let word = 0; word < 8; word++) keys.set(key, DIGEST + word, sought[word] as number);
			seek(fields.id, ID_DIGITS_AT, 4);
			for (let word = 0; word < 4; word++) keys.set(key, ID + word, sought[word] as number);
			setFields(key, seq, fields);
			byDigest.add(key);
			byId.add(key);
			return true;
		},
		take(digest) {
			if (keys.count === 0 || !DIGEST_FORM.test(digest)) return undefined;
			const key = findDigest(digest);
			if (key < 0) return undefined;
			const account = keys.get(key, ACCOUNT);
			const found: RestingKey = {
				digest,
				seq: numberAt(keys, key, SEQ),
				fields: fieldsOf(key),
				accountSeq: numberAt(accounts, account, ACCOUNT_SEQ),
				account: JSON.parse(texts.text(accounts.get(account, ACCOUNT_SETTINGS))) as AccountFields,
			};
			remove(key);
			return found;
		},
		applyKey(id, seq, fields) {
			if (keys.count === 0 || !KEY_ID.test(id)) return false;
			seek(id, ID_DIGITS_AT, 4);
			const key = byId.find(sought[3] as number, hasId);
			if (key < 0) return false;
			if (seq <= numberAt(keys, key, SEQ)) return true;
			if ((fields.projectId ?? null) !== null) {
				remove(key);
				return true;
			}
			const after = keyFieldsAfter(fieldsOf(key), fields);
			releaseFields(key);
			setFields(key, seq, after);
			return true;
		},
		applyAccount(id, seq, fields) {
			if (keys.count === 0 || !ACCOUNT_ID_FORM.test(id)) return;
			const account = findAccount(id);
			if (account >= 0) setAccount(account, seq, fields);
		},
		clear() {
			keys = new RecordPages(KEY_WORDS);
			accounts = new RecordPages(ACCOUNT_WORDS);
			texts = new SharedTexts();
			byDigest = new RecordIndex((key) => keys.get(key, DIGEST));
			byId = new RecordIndex((key) => keys.get(key, ID + 3));
			byAccount = new RecordIndex((account) => accounts.get(account, ACCOUNT_ID + 3));
			hand = 0;
		},
		size: () => keys.count,
	};
}

/** Lower hex digits from `from` on, eight a word, into `sought`. */
function seek(text: string, from: number, words: number): void {
	for (let word = 0, at = from; word < words; word++) {
		let value = 0;
		for (const end = at + 8; at < end; at++) {
			const code = text.charCodeAt(at);
			// '0' is 0x30, 'a' is 0x61.
			value = (value << 4) | ((code & 15) + (code >> 6) * 9);
		}
		sought[word] = value;
	}
}

function isAt(pages: RecordPages, record: number, from: number, words: number): boolean {
	for (let word = 0; word < words; word++) if (pages.get(record, from + word) !== sought[word]) return false;
	return true;
}

function hexAt(pages: RecordPages, record: number, from: number): string {
	let hex = "";
	for (let word = from; word < from + 4; word++) hex += pages.get(record, word).toString(16).padStart(8, "0");
	return hex;
}

function setNumber(pages: RecordPages, record: number, at: number, value: number): void {
	pages.set(record, at, value % WORD);
	pages.set(record, at + 1, Math.floor(value / WORD));
}

function numberAt(pages: RecordPages, record: number, at: number): number {
	return pages.get(record, at) + pages.get(record, at + 1) * WORD;
}
