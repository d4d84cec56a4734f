import type { MutantsOfFile } from "./mutant.ts";

/** A call to a model server: how long it may last, what is tried again, and what is believed of its answer. */
export const upstreamMutants: readonly MutantsOfFile[] = [
	{
		file: "upstream/call/guard.ts",
		killers: ["upstream/guard", "upstream/young-calls", "upstream/upstreams", "gateway/serve/settle-endings"],
		mutants: [
			{
				breaks: "a client that leaves is not noticed while a call lasts",
				before: 'clientSignal?.addEventListener("abort", this, ONCE);',
				after: "",
			},
			{
				breaks: "silence of a server has no end",
				before: 'else if (toSilence <= 0) this.#expire(this.#first ? "first event" : "silence");',
				after: "",
			},
			{
				breaks: "a call has no last moment",
				before: 'if (toTotal <= 0) this.#expire("total");\n\t\telse if',
				after: "if",
			},
			{
				breaks: "the total deadline begins anew with each attempt",
				before: "this.#totalAtMs = startedMs + limits.totalMs;",
				after: "this.#totalAtMs = clock.monotonicMs() + limits.totalMs + startedMs * 0;",
			},
			{
				breaks: "a server that does not take connections is waited for until the first event is due",
				before: "if (now >= this.#askAtMs) this.#ask();",
				after: "",
			},
			{
				breaks: "a long answer is the server's fault",
				before: 'return this.#expired === "total" ? "neutral" : "suspect";',
				after: 'return "suspect";',
			},
			{
				breaks: "a call that was refused as too many counts against the replica",
				before: 'return failure.status === 429 ? "neutral" : "suspect";',
				after: 'return "suspect";',
			},
			{
				breaks: "a refused connection may be the request's fault",
				before: 'return this.#unreachable || isRefused(failure.cause) ? "failed" : "suspect";',
				after: 'return "suspect";',
			},
		],
	},
	{
		file: "upstream/call/post.ts",
		killers: ["upstream/replay", "upstream/hostile-answers"],
		mutants: [
			{
				breaks: "a redirect is followed, with the prompt and the key",
				before: 'redirect: "manual",',
				after: "",
			},
			{
				breaks: "a request whose connection broke goes out on a kept one again",
				before: "keepalive: spec.keepAlive && !sender.freshConnection,",
				after: "keepalive: spec.keepAlive,",
			},
			{
				breaks: "a packed answer is read as it is",
				before: 'if (!isPlain) throw unreadable("an answer in an encoding that was not asked for");',
				after: "",
			},
		],
	},
	{
		file: "upstream/call/replay.ts",
		killers: ["upstream/guard", "upstream/replay"],
		mutants: [
			{
				breaks: "a request is sent anew that the server refused",
				before: '\t\tcase "misconfigured":\n\t\t\treturn true;',
				after: '\t\tcase "misconfigured":\n\t\tcase "rejected":\n\t\t\treturn true;',
			},
			{
				breaks: "a server that turns a request away has had it",
				before: "failed.filter(({ failure }) => !turnedAway(failure)).length",
				after: "failed.length",
			},
			{
				breaks: "a request that all servers turn away goes to all of them",
				before: " && failed.length < CALLS_MAX",
				after: "",
			},
			{
				breaks: "a request whose client has left is sent anew",
				before: "if (!replayable(error) || signal.aborted) throw error;",
				after: "if (!replayable(error)) throw error;",
			},
			{
				breaks: "a request that no server can answer goes through all of them",
				before: "if (isRequestsFault(failed)) throw unanswerable(failed);\n",
				after: "",
			},
			{
				breaks: "a request that failed everywhere counts against all replicas",
				before: 'for (const { ticket } of failed) ticket.judge("neutral");',
				after: "",
			},
			{
				breaks: "a connection that the server had closed is an answer that failed",
				before: "!freshConnection &&\n\t\t\t\tbrokeBeforeAnswer(error) &&",
				after: "freshConnection &&\n\t\t\t\tbrokeBeforeAnswer(error) &&",
			},
		],
	},
	{
		file: "upstream/call/call-notes.ts",
		killers: ["gateway/canary"],
		mutants: [
			{
				breaks: "an error of the upstream stands in the log with its own words",
				before: "...(ours ? { detail: failure.private } : {}),",
				after: "detail: failure.private,",
			},
		],
	},
	{
		file: "upstream/call/event-stream.ts",
		killers: [
			"upstream/hostile-answers",
			"upstream/sse-reader",
			"gateway/serve/stream-bytes",
			"upstream/closed-connection",
		],
		mutants: [
			{
				breaks: "a stream that ends without its end is whole",
				before: 'else if (done) this.#broke(died("the stream ended without its end"));',
				after: "else if (done) this.#finish(done);",
			},
			{
				breaks: "whatever arrived at once is read at once",
				before: "if (value !== undefined && value.byteLength > STEP_BYTES) {",
				after: "if (value !== undefined && value.byteLength < 0) {",
				killers: ["upstream/steps"],
			},
			{
				breaks: "a stream that is finished and counted is broken by a connection that closes",
				before: "|| !isBroken || !this.#reader.complete()) throw",
				after: "|| !isBroken || this.#reader.complete()) throw",
			},
			{
				breaks: "comments and keep-alives are words: silence is over with them",
				before: "if (anything) this.#attempt.guard.waitGoesOn();",
				after: "this.#attempt.guard.waitGoesOn();",
				killers: ["upstream/guard"],
			},
		],
	},
	{
		file: "upstream/chat/chat-reader.ts",
		killers: ["upstream/failure", "upstream/closed-connection", "upstream/usage", "gateway/serve/settle-endings"],
		mutants: [
			{
				breaks: "what follows the end marker is part of the answer",
				before: "if (this.#ended) return undefined;\n",
				after: "",
			},
			{
				breaks: "an answer is whole without a choice that was asked for",
				before: "return this.#choices.length >= this.#choicesAsked && this.#allFinished() && this.usageIsFinal();",
				after: "return this.#allFinished() && this.usageIsFinal();",
			},
			{
				breaks: "an end marker makes any answer whole",
				before: "if (completionTokens === 0 || !counted || this.#choices.length === 0)",
				after: "if (this.#choices.length === 0)",
			},
			{
				breaks: "a count from before the end stands for what came after it",
				before: "return this.#uncounted && !this.usageIsFinal() ? withoutCompletion(current) : current;",
				after: "return current;",
			},
		],
	},
	{
		file: "upstream/chat/chat-tally.ts",
		killers: ["upstream/usage", "upstream/choices", "gateway/chat/dialect-matrix"],
		mutants: [
			{
				breaks: "a record that is said again is added",
				before: "!hasChoices && finished > 0 && this.#records >= finished) {",
				after: "!hasChoices && finished < 0) {",
			},
			{
				breaks: "the prompt counts for each choice",
				before: "promptTokens: Math.max(sum.promptTokens ?? 0, part.promptTokens ?? 0) || undefined,",
				after: "promptTokens: sumOf(sum.promptTokens, part.promptTokens),",
			},
			{
				breaks: "of several choices the last one's count is the whole",
				before: "completionTokens: sumOf(sum.completionTokens, part.completionTokens),",
				after: "completionTokens: part.completionTokens,",
			},
			{
				breaks: "a count that comes before the end is final",
				before: "this.#final = !hasChoices || finished > 0;",
				after: "this.#final = true;",
			},
		],
	},
	{
		file: "upstream/usage.ts",
		killers: ["upstream/usage"],
		mutants: [
			{
				breaks: "a count beyond all reason is believed",
				before: "const TOKENS_MAX = 2 ** 31 - 1;",
				after: "const TOKENS_MAX = Number.MAX_SAFE_INTEGER;",
			},
			{
				breaks: "more is cached than the prompt has",
				before: "cachedTokens: Math.min(cached, prompt ?? 0),",
				after: "cachedTokens: cached,",
			},
			{
				breaks: "reasoning beside the completion is free",
				before:
					"if (completion !== undefined && reasoning > completion) completion = Math.min(completion + reasoning, TOKENS_MAX);",
				after: "",
			},
			{
				breaks: "what the total has beyond both halves is free",
				before: "else if (beyond > 0) completion = total - prompt;",
				after: "",
			},
			{
				breaks: "a prompt of zero tokens was counted",
				before: "let prompt = asCount(record.prompt_tokens, TOKENS_MAX) || undefined;",
				after: "let prompt = asCount(record.prompt_tokens, TOKENS_MAX);",
			},
		],
	},
];
