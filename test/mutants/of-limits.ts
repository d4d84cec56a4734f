import type { MutantsOfFile } from "./mutant.ts";

/** What a key may do in a minute and at once, over all instances. */
export const limitMutants: readonly MutantsOfFile[] = [
	{
		file: "keys/limit-shares.ts",
		killers: ["limits/shared-limits"],
		mutants: [
			{
				breaks: "a database's clock that leaps takes its shares from an instance that lives",
				before: "or i.state <> 'live' and greatest(",
				after: "or (i.state <> 'live' or i.lease_until < clock_timestamp()) and greatest(",
			},
			{
				breaks: "of a process that joins again and again the statements grow for good",
				before: "if (former.length > FORMER_MAX) former.shift();",
				after: "",
			},
			{
				breaks: "what a process held by its last epochs is another's",
				before: "if (epoch !== undefined && epoch !== present) former.push(epoch);",
				after: "",
			},
		],
	},
	{
		file: "limits/shares.ts",
		killers: ["limits/shares", "limits/shared-limits"],
		mutants: [
			{
				breaks: "a share that was given back meanwhile comes back with the reply",
				before: "share.amount += more;",
				after: "share.amount = grant.share;",
			},
			{
				breaks: "a lowered limit leaves shares of the former one",
				before: "if (limit < share.limit || opening !== share.openings) share.isStale = true;",
				after: "if (opening !== share.openings) share.isStale = true;",
			},
			{
				breaks: "a share outlives the gate",
				before: "if (limit < share.limit || opening !== share.openings) share.isStale = true;",
				after: "if (limit < share.limit) share.isStale = true;",
			},
			{
				breaks: "what was asked for before the gate was closed is taken behind it",
				before: "if (!inTime || ask.limit > share.limit) {",
				after: "if (ask.limit > share.limit) {",
			},
			{
				breaks: "a share keeps what was in use when the limit was lowered",
				before: "if (share.isStale) giveBack(share);",
				after: "if (share.isStale) giveBack(share);\n\t\t\tshare.isStale = false;",
			},
			{
				breaks: "what is granted of a limit that was lowered meanwhile is taken",
				before: "if (!inTime || ask.limit > share.limit) {",
				after: "if (!inTime) {",
			},
			{
				breaks: "a share is given back with what is used of it",
				before: "share.amount = used;\n",
				after: "share.amount = 0;\n",
			},
			{
				breaks: "a share that was not given back is forgotten when the store fails",
				before: "dirty.add(share);\n\t\tshare.answered?.reject(error);",
				after: "if (share.answered !== undefined) dirty.add(share);\n\t\tshare.answered?.reject(error);",
			},
			{
				breaks: "what the store left out is taken for refused",
				before: "share.isLeftOut = grant === undefined;",
				after: "share.isLeftOut = false;",
			},
			{
				breaks: "a share that was left out is forgotten before the store has it back",
				before: "share.amount === 0 && !share.isLeftOut && !dirty.has(share)",
				after: "share.amount === 0 && !dirty.has(share)",
			},
			{
				breaks: "what runs behind a gate that was closed is told to nobody",
				before: "telling = all.values();",
				after: "",
			},
			{
				breaks: "what was granted by an answer that was lost is nobody's",
				before: "dirty.add(share);\n\t\tshare.answered?.reject(error);",
				after: "if (share.answered === undefined) dirty.add(share);\n\t\tshare.answered?.reject(error);",
			},
		],
	},
	{
		file: "limits/key-limits.ts",
		killers: ["limits/key-limits", "limits/shares", "limits/shared-limits"],
		mutants: [
			{
				breaks: "keys that count are forgotten for others that come",
				before: "forgetSome(KEYS_A_KEY, nowMs, usages.size >= KEYS_MAX)",
				after: "forgetSome(KEYS_A_KEY, nowMs, true)",
			},
			{
				breaks: "keys are never forgotten, however many come",
				before: "forgetSome(KEYS_A_KEY, nowMs, usages.size >= KEYS_MAX)",
				after: "forgetSome(KEYS_A_KEY, nowMs, false)",
			},
			{
				breaks: "the minutes of instances begin apart",
				before: "windowStart(nowMs, clock.wallMs())",
				after: "windowStart(nowMs, 0)",
			},
			{
				breaks: "a withdrawn request counts for the minute",
				before: "usage.running -= 1;\n\t\t\tusage.count -= 1;",
				after: "usage.running -= 1;",
			},
			{
				breaks: "one more runs at once than may",
				before: 'kind === "running" ? usage.running >= amount :',
				after: 'kind === "running" ? usage.running > amount :',
			},
			{
				breaks: "one more a minute is admitted than may",
				before: "counted(usage, nowMs) > amount - 1;",
				after: "counted(usage, nowMs) > amount;",
			},
			{
				breaks: "an instance counts by the key's limit, not by its share",
				before: "return share === undefined || !isUsedUp(usage, kind, share.amount, nowMs);",
				after: "return true;",
			},
		],
	},
	{
		file: "limits/rate-window.ts",
		killers: ["limits/key-limits", "limits/shared-limits"],
		mutants: [
			{
				breaks: "minutes stay where a clock began them that was set since",
				before: "> APART_MS_MAX) window.sinceMs = startMs;",
				after: "> WINDOW_MS) window.sinceMs = startMs;",
			},
			{
				breaks: "at the very end of a minute the one before is forgotten",
				before: "Math.min(apartMs, WINDOW_MS - apartMs)",
				after: "apartMs",
			},
			{
				breaks: "the minute before counts in full all through the next",
				before: "count + countBefore * (1 - (nowMs - sinceMs) / WINDOW_MS)",
				after: "count + countBefore",
			},
			{
				breaks: "who comes back when told to is a moment too early",
				before: "sinceMs + WINDOW_MS * (1 - (room - count) / countBefore)",
				after: "sinceMs + WINDOW_MS * (1 - (room + 1 - count) / countBefore)",
			},
		],
	},
];
