import type { MutantsOfFile } from "./mutant.ts";

/** What a request may do and cost: admission, keys. */
export const requestMutants: readonly MutantsOfFile[] = [
	{
		file: "admission/admission.ts",
		killers: ["admission/admission"],
		mutants: [
			{
				breaks: "who comes before the news of a cap that was lifted is refused",
				before: "await awaitCapNews(key, shortage.budget);",
				after: ";",
			},
			{
				breaks: "a key is not looked at in the moment of admission",
				before: "checkAccess(key, nowMs);",
				after: "",
			},
			{
				breaks: "a key may use any model",
				before: "if (models !== null && !models.has(id))",
				after: "if (models === undefined)",
			},
			{
				breaks: "a request that found no credit counts against its key's limits",
				before: "if (!hold && limited) withdrawLimits(key);",
				after: "",
			},
			{
				breaks: "a key may use any model of which its project knows nothing",
				before: "if (project !== null && project.models !== null && !project.models.has(id))",
				after: "if (models === undefined)",
			},
			{
				breaks: "what a project's limits refuse counts against its key's",
				before: "if (!entered) keyLimits.withdraw(key.id);",
				after: "",
			},
			{
				breaks: "a request that ended runs on for its project's limits",
				before: "if (project !== null) keyLimits.leave(project.id);",
				after: "",
			},
			{
				breaks: "a request draws on no project",
				before: "budgets: furtherBudgets(key, nowMs),\n\t\t\t\tbatch",
				after: "budgets: furtherBudgets({ ...key, project: null }, nowMs),\n\t\t\t\tbatch",
			},
			{
				breaks: "a request that ended runs on for its key's limits",
				before: "keyLimits.leave(id);\n",
				after: "",
			},
			{
				breaks: "a request that can cost nothing takes no credit at all",
				before: "const reserved = amount > 0 ? amount : nanoUsd(1);",
				after: "const reserved = amount;",
			},
		],
	},
	{
		file: "admission/price.ts",
		killers: ["admission/price"],
		mutants: [
			{ breaks: "prices are rounded down", before: "Math.ceil(sumPico / 1000)", after: "Math.floor(sumPico / 1000)" },
			{
				breaks: "a bound takes the rate of what is read anew, though a cache may be dearer",
				before: "const dearest = Math.max(card.input, card.cachedInput);\n\treturn quickSum",
				after: "const dearest = card.input;\n\treturn quickSum",
			},
			{
				breaks: "sums that cannot be computed exactly are taken for exact",
				before: "Number.isSafeInteger(sumPico) && ",
				after: "",
			},
			{
				breaks: "cached tokens are paid twice",
				before: "(prompt - cached) * input +",
				after: "prompt * input +",
			},
		],
	},
	{
		file: "admission/prompt-bound.ts",
		killers: ["admission/prompt-bound", "gateway/chat/chat-request"],
		mutants: [
			{
				breaks: "a bound knows nothing of a template's marks",
				before: "measure.messages * MESSAGE_TOKENS + (",
				after: "(",
			},
			{
				breaks: "a bound knows nothing of images",
				before: " + marks + measure.images * IMAGE_TOKENS);",
				after: " + marks);",
			},
			{
				breaks: "what normalising adds to text that was left out is not bounded",
				before: 'model.textNormalization === "none" ? 0 : normalizedMoreMax(leftOut)',
				after: "0",
			},
			{
				breaks: "what normalising adds to mostly plain text is not bounded",
				before: "? normalizedMoreMax(length)\n",
				after: "? 0\n",
			},
			{
				breaks: "a character becomes fourteen at most",
				before: "const NORMALIZED_MORE = 15;",
				after: "const NORMALIZED_MORE = 14;",
			},
			{
				breaks: "a bound knows nothing of what normalising adds",
				before: "const bytes = measure.textBytes + (measure.addedBytes ?? 0);",
				after: "const bytes = measure.textBytes;",
			},
			{
				breaks: "text is measured in characters",
				before: "const bytes = Buffer.byteLength(text);\n",
				after: "const bytes = text.length;\n",
			},
			{
				breaks: "names and call ids of a message cost nothing",
				before: 'if (typeof value === "string") addText(measure, value, model);\n\t\telse if (field',
				after:
					'if (typeof value === "string") void (field === "content" && addText(measure, value, model));\n\t\telse if (field',
			},
		],
	},
	{
		file: "gateway/body/shortened-json.ts",
		killers: ["gateway/body/shortened-json"],
		mutants: [
			{
				breaks: "strings end early however deep they stand",
				before: "if (raw === undefined || raw.levels > LEVELS_MAX)",
				after: "if (raw === undefined)",
			},
			{
				breaks: "names, addresses and arguments end early, too",
				before: "const said = isText(text, from) ? lengthSaid(string) : undefined;",
				after: "const said = lengthSaid(string);",
			},
			{
				breaks: "what an escape stands for counts as two",
				before: "bytes: Buffer.byteLength(string) - escapes,",
				after: "bytes: Buffer.byteLength(string),",
			},
			{
				breaks: "what is kept of a string counts twice",
				before: "bytes -= Buffer.byteLength(parsed);",
				after: "",
			},
			{
				breaks: "one string of which nothing can be left out keeps all others whole",
				before: "misfits = 0;\n\t\tkept",
				after: "misfits = MISFITS_MAX;\n\t\tkept",
			},
			{
				breaks: "little is left out, and most is copied and may be parsed twice",
				before: "if (chars * WORTH < raw.text.length) return { text, leftOut: undefined };",
				after: "",
			},
			{
				breaks: "characters beyond ASCII count as one byte each",
				before: "bytes: Buffer.byteLength(string) - escapes,",
				after: "bytes: string.length - escapes,",
			},
			{
				breaks: "text of which normalising may make much more is left out",
				before: "return isMostlyAscii(length) && !CONTROL.test(string)",
				after: "return !CONTROL.test(string)",
			},
			{
				breaks: "a control character passes in what is left out",
				before: "return isMostlyAscii(length) && !CONTROL.test(string)",
				after: "return isMostlyAscii(length)",
			},
			{
				breaks: "an escape that is none passes in what is left out",
				before: "if (escapes > escapesMax || !ESCAPED.includes(string.charAt(at + 1))) return undefined;",
				after: "if (escapes > escapesMax) return undefined;",
			},
			{
				breaks: "an escape is cut in the middle",
				before: "while (string.charAt(to - 1) === ESCAPE) to -= 1;",
				after: "",
			},
			{
				breaks: "conversations are not told apart by how they begin",
				before: "if (at < 2 * BEGINNINGS) {",
				after: "if (at < 0) {",
			},
		],
	},
	{
		file: "gateway/chat/chat-request.ts",
		killers: ["gateway/chat/chat-request"],
		mutants: [
			{
				breaks: "what was left out of long messages costs nothing",
				before: "passed === undefined ? undefined : leftOut)",
				after: "undefined)",
			},
			{
				breaks: "what was left out of long messages is reserved twice where they are read again",
				before: "passed === undefined ? undefined : leftOut)",
				after: "leftOut)",
			},
			{
				breaks: "messages that cannot go on as they came go on without what was left out",
				before: "body.messages = JSON.parse(raw.text);\n",
				after: "",
			},
			{
				breaks: "parts of messages that are read again go on with all that was in them",
				before: "body.messages = JSON.parse(raw.text);\n\t\tcheckMessages(body.messages, model);",
				after: "body.messages = JSON.parse(raw.text);",
			},
		],
	},
	{
		file: "gateway/chat/passed-messages.ts",
		killers: ["gateway/chat/chat-request"],
		mutants: [
			{
				breaks: "messages with a name twice, or parts of which something was dropped, go on as they came",
				before: "return known === names && (",
				after: "return (",
			},
			{
				breaks: "messages with other fields go on as they came",
				before: "if (!TEXT_FIELDS.has(field) && (value !== null || !EMPTY_FIELDS.has(field))) return undefined;",
				after: "",
			},
			{
				breaks: "messages with any field that is empty go on as they came",
				before: "(value !== null || !EMPTY_FIELDS.has(field))",
				after: "value !== null",
			},
			{
				breaks: "lists in messages that hold something go on as they came",
				before: "!Array.isArray(value) || value.length > 0) return undefined;",
				after: "!Array.isArray(value)) return undefined;",
			},
			{
				breaks: "calls with other fields go on as they came",
				before: "if (!CALL_FIELDS.has(field)) return undefined;",
				after: "",
			},
			{
				breaks: "functions with other fields go on as they came",
				before: "if (!FUNCTION_FIELDS.has(name) || ",
				after: "if (",
			},
			{
				breaks: "functions with arguments that are no text go on as they came",
				before: ' || typeof (value as Record<string, unknown>)[name] !== "string"',
				after: "",
			},
		],
	},
	{
		file: "keys/keyring.ts",
		killers: ["keys/keyring"],
		mutants: [
			{
				breaks: "a row that is older than what was applied is taken in",
				before: "startedIn === generation && loaded.seq >= appliedSeq",
				after: "startedIn === generation",
			},
			{
				breaks: "a row that was asked for before all was forgotten is taken in",
				before: "startedIn === generation && loaded.seq >= appliedSeq",
				after: "loaded.seq >= appliedSeq",
			},
			{
				breaks: "a request goes on by a key that the keyring let go of",
				before: "byId.delete(entry.id);\n\t\tentry.current = false;",
				after: "byId.delete(entry.id);",
			},
			{
				breaks: "a request goes on by a key of an epoch that ended",
				before: "for (const slot of byDigest.values()) slot.entry.current = false;",
				after: "",
			},
			{
				breaks: "a new key stays unknown",
				before: "unknown.clear();\n\t\t} else if",
				after: "} else if",
			},
			{
				breaks: "an older entry overwrites what is known of a key",
				before: "} else if (entry.seq > slot.seq) {",
				after: "} else if (entry.seq >= 0) {",
			},
			{
				breaks: "a key that was moved goes on as its former project's",
				before: "if ((fields.projectId ?? null) !== (slot.entry.project?.id ?? null)) forget(slot);\n\t\t\telse ",
				after: "",
			},
			{
				breaks: "a key of a project rests without it",
				before: "if (entry.project === null) {",
				after: "if (entry.current) {",
			},
			{
				breaks: "an entry about a project does not reach its keys",
				before: "projects.apply(entry.subject, entry.seq, entry.payload as unknown as ProjectFields);",
				after: "Boolean(entry);",
			},
			{
				breaks: "an entry about an account does not make a loaded row outdated",
				before: "appliedSeq = Math.max(appliedSeq, entry.seq);",
				after: 'if (entry.kind === "key") appliedSeq = Math.max(appliedSeq, entry.seq);',
			},
			{
				breaks: "each request asks Postgres for the same key",
				before: "if (running !== undefined) return running;",
				after: "",
			},
		],
	},
	{
		file: "keys/owner-slots.ts",
		killers: ["keys/keyring"],
		mutants: [
			{
				breaks: "an older row overwrites what is known of an account",
				before: "} else setAt(slot, seq, fields);",
				after: "} else set(slot.entry, fields);",
			},
			{
				breaks: "an older entry overwrites what is known of an account",
				before: "if (slot !== undefined) setAt(slot, seq, fields);",
				after: "if (slot !== undefined) set(slot.entry, fields);",
			},
		],
	},
	{
		file: "keys/access.ts",
		killers: ["keys/access"],
		mutants: [
			{
				breaks: "a key of an archived project admits",
				before: 'if (entry.project?.state === "archived")',
				after: 'if (entry.id === "")',
				killers: ["admission/admission"],
			},
			{ breaks: "a key that the keyring let go of admits", before: "if (!entry.current) {", after: "if (!entry) {" },
			{
				breaks: "a revoked key admits",
				before: 'if (entry.state === "revoked")',
				after: 'if (entry.id === "")',
			},
			{
				breaks: "a key admits in the moment in which it expires",
				before: "nowMs >= entry.expiresAtMs",
				after: "nowMs > entry.expiresAtMs",
			},
			{
				breaks: "a suspended account admits",
				before: 'if (entry.account.state === "suspended")',
				after: 'if (entry.id === "")',
			},
			{
				breaks: "an account that never topped up admits",
				before: "if (!entry.account.toppedUp)",
				after: 'if (entry.id === "")',
			},
		],
	},
];
