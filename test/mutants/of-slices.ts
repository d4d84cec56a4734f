import type { MutantsOfFile } from "./mutant.ts";

/** Slices of budgets: in, out, asked back. */
export const sliceMutants: readonly MutantsOfFile[] = [
	{
		file: "ledger/slices.ts",
		killers: ["ledger/slices", "ledger/refusals", 60],
		mutants: [
			{
				breaks: "what goes back stays in memory until it has arrived",
				before: "slice.free = subUsd(slice.free, amount);",
				after: "queueMicrotask(() => (slice.free = subUsd(slice.free, amount)));",
			},
			{
				breaks: "what was promised to a request is given back under its hands",
				before: "if (slice.free > slice.promised) sendBack(slice, subUsd(slice.free, slice.promised), recall);",
				after: "if (slice.free > 0) sendBack(slice, slice.free, recall);",
			},
			{
				breaks: "nothing is promised to a request that was told that it may reserve",
				before: "if (shortage === null) tell();",
				after: "",
			},
			{
				breaks: "a recall is answered by what goes back, though more is on its way here or there",
				before:
					"const alone =\n\t\t\tslice.returns.size === 0 && slice.asking === undefined && slice.free > slice.promised && !slice.mayHoldMore;",
				after: "const alone = slice.free > slice.promised;",
			},
			{
				breaks: "a recall is answered before what lies free is handed back",
				before: "if (slice && (await surrender(slice, ticket))) return;",
				after:
					"await returns.send({ op: newUuid(), budget, amount: ZERO_USD, recall: ticket });\n\t\t\tif (slice && (await surrender(slice, ticket))) return;",
			},
			{
				breaks: "an answer to a recall does not wait for what is on its way back",
				before: "await Promise.all(slice.returns);\n\t\treturn alone;",
				after: "return alone;",
			},
			{
				breaks: "an answer to a recall does not wait for the grant that is on its way here",
				before: "if (slice.asking) {",
				after: "if (slice.asking && stopped) {",
			},
			{
				breaks: "an instance that does not know all it holds answers a recall",
				before: "if (slice?.mayHoldMore) return;",
				after: "",
			},
			{
				breaks: "a grant that was given up counts as one that was refused",
				before: "if (slice) slice.mayHoldMore = true;",
				after: "if (slice) slice.mayHoldMore = false;",
			},
			{
				breaks: "what an instance does not know of itself is forgotten when it is idle",
				before: "slice.returning === 0 && !slice.mayHoldMore) slices",
				after: "slice.returning === 0) slices",
			},
			{
				breaks: "a lowered limit is not handed back",
				before: "slice.promised = ZERO_USD;\n\t\t\tgiveBack(slice);",
				after: "slice.promised = ZERO_USD;",
			},
			{
				breaks: "what was promised before a limit was lowered can still be reserved",
				before: "slice.promised = ZERO_USD;\n\t\t\tgiveBack(slice);",
				after: "giveBack(slice);",
			},
			{
				breaks: "a promise that a lowered limit took back is taken back once more",
				before: "if (lowering < slice.lowering) return;",
				after: "",
			},
			{
				breaks: "what a request leaves whose limit was lowered meanwhile can be spent again",
				before: "if (lowering < slice.lowering && rest > 0) sendBack(slice, rest, null);",
				after: "",
				killers: ["ledger/ledger"],
			},
			{
				breaks: "what a request leaves goes back though its limit was lowered before it was admitted",
				before: "if (lowering < slice.lowering && rest > 0)",
				after: "if (lowering <= slice.lowering && rest > 0)",
				killers: ["ledger/ledger"],
			},
			{
				breaks: "what was granted before a limit was lowered is kept when it arrives",
				before: "slice.askedTooEarly = slice.asking !== undefined;",
				after: "slice.askedTooEarly = false;",
			},
			{
				breaks: "an idle slice is kept",
				before: "if (slice.free > 0) giveBack(slice);",
				after: "if (slice.free > 0) slice.lastUsedMs = nowMs;",
			},
			{
				breaks: "a slice is forgotten while something of it is on its way",
				before:
					"else if (slice.unacknowledged === 0 && slice.returning === 0 && !slice.mayHoldMore) slices.delete(slice.budget);",
				after: "else if (!slice.mayHoldMore) slices.delete(slice.budget);",
			},
			{
				breaks: "what becomes free at the end of an epoch stays there until it is closed",
				before: "slice.contestedUntilMs = Number.POSITIVE_INFINITY;",
				after: "",
			},
			{
				breaks: "what becomes free of a contested budget is kept",
				before: "slice.lastUsedMs = nowMs;\n\t\t\tgiveBackIfIdle(slice, nowMs);",
				after: "slice.lastUsedMs = nowMs;",
			},
			{
				breaks: "any number of requests waits for one account's credit",
				before: "if (slice.waiters.length >= WAITERS_MAX) {",
				after: "if (slice.waiters.length >= Number.POSITIVE_INFINITY) {",
			},
		],
	},
	{
		file: "ledger/slice-pump.ts",
		killers: ["ledger/slices", "ledger/refusals", "ledger/proof-of-refusal", 60],
		mutants: [
			{
				breaks: "a cap that was lifted a moment ago is said to be spent",
				before: "refuse(slice, slice.waiters, ZERO_USD, true);",
				after: "refuse(slice, slice.waiters, ZERO_USD);",
			},
			{
				breaks: "own returns are not awaited before a need is refused",
				before: "await Promise.all(slice.returns);\n\t\t\t\t\tif (slice.returnsEver === returnsBefore) search",
				after: "search",
			},
			{
				breaks: "a need is refused by a question that own returns came behind",
				before: "if (slice.returnsEver === returnsBefore) search =",
				after: "search =",
			},
			{
				breaks: "a recall is not repeated for those who came after it",
				before: "let left = refused.filter(({ number }) => number <= search.upTo);",
				after: "let left = [...refused];",
			},
			{
				breaks: "who came while the recall was sent counts as asked for",
				before: "return { ticket, upTo, since",
				after: "return { ticket, upTo: slice.waitersEver, since",
			},
			{
				breaks: "who came while the question was under way is refused by it",
				before: "number <= upTo && need - slice.free >= min);",
				after: "number > 0 && need - slice.free >= min);",
			},
			{
				breaks: "who lacks less than was refused is refused too",
				before: "number <= upTo && need - slice.free >= min);",
				after: "number <= upTo && need >= 0);",
			},
			{
				breaks: "a need is refused without asking the others",
				before: "if (reply.unanswered === 0 && (!search || reply.lent === null)) {",
				after: "if (reply.unanswered >= 0) {",
			},
			{
				breaks: "a need is refused by one answer of each, given one after the other",
				before: "if (reply.lent !== null && !search.before) return",
				after:
					"search = { ...search, before: { lent: reply.lent ?? 0n, free: ZERO_USD } };\n\t\tif (false as boolean) return",
			},
			{
				breaks: "what others were granted between two questions is not counted",
				before: "BigInt(before.free) + taken <",
				after: "BigInt(before.free) <",
			},
			{
				breaks: "what was free here at the second question is not counted",
				before: "BigInt(available) + BigInt(before.free)",
				after: "BigInt(available)",
			},
			{
				breaks: "a sum of grants that fell proves a refusal",
				before: "return taken >= 0n && ",
				after: "return ",
			},
			{
				breaks: "answers to a recall count on behind a grant",
				before: "// What the others had is known no longer.\n\t\t\t\t\tsearch = undefined;",
				after: "",
			},
			{
				breaks: "a refusal that nobody can prove is waited for without end",
				before: "if (clock.monotonicMs() - search.sinceMs >= PROOF_MS_MAX) {",
				after: "if (clock.monotonicMs() < 0) {",
			},
			{
				breaks: "what a grant brings behind a lowered limit is kept",
				before: "if (!slice.askedTooEarly) return wake(slice);",
				after: "if (slice.free >= 0) return wake(slice);",
			},
			{
				breaks: "waiters are told of more than there is",
				before: "left = subUsd(left, waiter.need);\n",
				after: "\n",
			},
			{
				breaks: "while others lack a budget as much is asked for as ever",
				before: "if (isContested(slice, clock.monotonicMs())) return { want: min, min };",
				after: "",
			},
			{
				breaks: "credit that others lack is asked for ahead",
				before: " || isContested(slice, nowMs)) return;",
				after: ") return;",
			},
		],
	},
	{
		file: "ledger/grants.ts",
		killers: ["ledger/slices", "ledger/refusals", 60],
		mutants: [
			{
				breaks: "a grant of unknown fate is asked for as if for the first time",
				before: "again = true;",
				after: "again = false;",
			},
			{
				breaks: "a grant of unknown fate is asked for by another id",
				before: "again = true;",
				after: "op = newUuid();",
			},
			{
				breaks: "the refusal of an earlier attempt is taken for one of now",
				before: "if (again && !reply.busy && reply.amount === 0) {",
				after: "if (again && reply.busy && reply.amount > 0) {",
			},
			{
				breaks: "a row that somebody holds is taken for a refusal",
				before: "if (!reply.busy) return reply;",
				after: "if (reply) return reply;",
			},
			{
				breaks: "nobody hears that a grant was given up whose fate is unknown",
				before: "if (stopped) {\n\t\t\t\t\tif (again) deps.onUnknown(budget);",
				after: "if (stopped) {",
				equivalent:
					"grants and returns are stopped together, and it is of returns that answers consist: from then on none goes out that could be wrong",
			},
		],
	},
	{
		file: "ledger/returns.ts",
		killers: ["ledger/slices", "ledger/refusals", 60],
		mutants: [
			{
				breaks: "a return that was left out for a held row counts as arrived",
				before: "if (!busy.has(request.op)) resolve(true);",
				after: "resolve(true);",
			},
			{
				breaks: "a return that was left out for a held row is not sent again",
				before: "left = left.filter(({ request }) => busy.has(request.op));",
				after: "left = [];",
			},
			{
				breaks: "a return that was not answered counts as arrived",
				before: "await sleep(clock, RETRY_MS);",
				after: "for (const { resolve } of left) resolve(true);\n\t\t\t\t\treturn;",
			},
		],
	},
	{
		file: "ledger/recaller.ts",
		killers: ["ledger/refusals", 60],
		mutants: [
			{
				breaks: "each short budget sends a statement of its own",
				before: "clock.after(Math.max(0, sentMs + INTERVAL_MS - clock.monotonicMs()), send);",
				after: "sending = false;\n\t\tsend();",
			},
		],
	},
	{
		file: "ledger/recall-answers.ts",
		killers: ["ledger/recall-answers", "ledger/refusals", 60],
		mutants: [
			{
				breaks: "a notification of a recall that was lost is never made up for",
				before: "cancelPoll = clock.after(POLL_MS, poll);\n\t\thear();",
				after: "",
			},
		],
	},
];
