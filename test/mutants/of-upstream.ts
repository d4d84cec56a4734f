import type { MutantsOfFile } from "./mutant.ts";

/** Model servers: who is asked, how long, how often, and what is believed of an answer. */
export const upstreamMutants: readonly MutantsOfFile[] = [
	{
		file: "upstream/replicas/breaker.ts",
		killers: ["upstream/breaker"],
		mutants: [
			{
				breaks: "a call from before a breaker's change of state counts behind it",
				before: "if (call.generation !== generation) return;\n\t\t\tif (outcome",
				after: "if (outcome",
			},
			{
				breaks: "what one account alone meets keeps everybody away",
				before: "if (new Set(failures.map((failure) => failure.accountId)).size > 1) {",
				after: "if (failures.length > 0) {",
			},
			{
				breaks: "failures of several keep everybody away while others are answered",
				before: "if (!outcomes.othersAnswered(failures)) open();",
				after: "open();",
			},
			{
				breaks: "a breaker that cools lets any number of calls try",
				before: 'if (state === "half_open") trialRuns = true;',
				after: "",
			},
			{
				breaks: "a trial that failed cools no longer than before",
				before: "coolMs = Math.min(coolMs * 2, limits().breakerCoolMsMax);",
				after: "",
			},
			{
				breaks: "a breaker cools for longer and longer, without a most",
				before: "Math.min(coolMs * 2, limits().breakerCoolMsMax)",
				after: "coolMs * 2",
			},
			{
				breaks: "who was kept away alone stays so though the failures were his request's",
				before:
					"if (resting === call.accountId && outcomes.failuresInRow().length < limits().breakerFailuresInRow)\n\t\t\t\tresting = undefined;",
				after: "",
			},
		],
	},
	{
		file: "upstream/replicas/call-outcomes.ts",
		killers: ["upstream/breaker"],
		mutants: [
			{
				breaks: "an answer ends no row of failures",
				before: "if (inRow.length > 0) inRow = [];",
				after: "",
			},
			{
				breaks: "an answer to others speaks for a replica that calls itself ill",
				before: "if (!healthy()) return false;",
				after: "",
			},
			{
				breaks: "an answer to others speaks for a replica for ever",
				before: " && atMs >= sinceMs && ",
				after: " && ",
			},
			{
				breaks: "a share of failures is taken of fewer calls than the window has",
				before: "if (window.length < WINDOW_CALLS) return false;",
				after: "",
			},
		],
	},
	{
		file: "upstream/replicas/pool.ts",
		killers: ["upstream/pool", "upstream/patient-calls"],
		mutants: [
			{
				breaks: "an account may hold all places",
				before: "if (hasItsShare(wanted.accountId)) return undefined;",
				after: "",
			},
			{
				breaks: "a full queue refuses the one who comes, however long another's line is",
				before: "const last = lines.displaced(wanted.accountId);",
				after: "const last = undefined as Waiter | undefined;",
			},
			{
				breaks: "the queue has no end",
				before: "if (lines.size() >= limits().queueLengthMax) {",
				after: "if (lines.size() < 0) {",
			},
			{
				breaks: "who waits for a place waits for ever",
				before: "clock.after(limits().queueWaitMs, () => refuse(overloaded())),",
				after: "() => {},",
			},
			{
				breaks: "a client that leaves the queue stays in it",
				before: 'wanted.signal.addEventListener("abort", onAbort, { once: true });',
				after: "",
			},
			{
				breaks: "a line of a batch is served before somebody who waits",
				before: "return lines.size() > 0 ? undefined : patient.choose(replicas, exclude, accountId);",
				after: "return patient.choose(replicas, exclude, accountId);",
			},
			{
				breaks: "nobody asks a line of a batch for its place",
				before: "if (!wanted.signal.aborted && !hasItsShare(wanted.accountId)) askForPlace(wanted);",
				after: "",
			},
			{
				breaks: "places of lines of batches are their account's",
				before: "if (line === undefined) count(accountId, 1);",
				after: "count(accountId, 1);",
			},
			{
				breaks: "an address that comes back while calls of it are under way takes no others",
				before: "for (const replica of leaving) if (next.includes(replica)) replica.takeBack();\n",
				after: "",
				killers: ["upstream/upstreams"],
			},
			{
				breaks: "who waits is not looked at when a server cools down by time alone",
				before: "if (lines.size() + patient.waiting.size + patient.watching.size > 0) lookAgain();",
				after: "",
			},
		],
	},
	{
		file: "upstream/replicas/waiting-lines.ts",
		killers: ["upstream/pool"],
		mutants: [
			{
				breaks: "places go by who came first, however many he has",
				before: "ranked.sort((a, b) => a.places - b.places || a.line.turn - b.line.turn);",
				after: "ranked.sort((a, b) => a.line.turn - b.line.turn);",
			},
			{
				breaks: "who had a place just now is first again",
				before: "if (line !== undefined) line.turn = turns++;",
				after: "",
			},
			{
				breaks: "the last of a line no longer than one's own is displaced",
				before: "<= (lines.get(accountId)?.waiters.size ?? 0) + 1",
				after: "<= 0",
			},
		],
	},
	{
		file: "upstream/replicas/replica-choice.ts",
		killers: ["upstream/pool"],
		mutants: [
			{
				breaks: "a conversation stays with its replica however busy that is",
				before: "return loadOf(preferred) <= leastLoad + AFFINITY_SLACK_SHARE ? preferred : least;",
				after: "return preferred;",
			},
			{
				breaks: "a conversation moves to whoever is less busy by anything",
				before: "leastLoad + AFFINITY_SLACK_SHARE ?",
				after: "leastLoad ?",
			},
			{
				breaks: "the busiest replica is asked",
				before: "if (load < leastLoad) {",
				after: "if (least === undefined || load > leastLoad) {",
			},
			{
				breaks: "a replica that the request failed at is asked again",
				before: "if (exclude.has(replica) || !replica.hasPlace(accountId)) continue;",
				after: "if (!replica.hasPlace(accountId)) continue;",
			},
		],
	},
	{
		file: "upstream/replicas/replica.ts",
		killers: ["upstream/pool", "upstream/breaker"],
		mutants: [
			{
				breaks: "a replica that comes back takes its full load at once",
				before: 'if (next === "up" && health === "down") recoveredAtMs = clock.monotonicMs();',
				after: "",
			},
			{
				breaks: "a replica takes more calls than it has places",
				before: " && breaker.allows(accountId) && inFlight < capacity(),",
				after: " && breaker.allows(accountId),",
			},
			{
				breaks: "the first event of a trial closes no breaker",
				before: 'breaker.end(call, "ok");\n\t\t\trecoveredAtMs',
				after: "recoveredAtMs",
			},
		],
	},
	{
		file: "upstream/replicas/health.ts",
		killers: ["upstream/health"],
		mutants: [
			{
				breaks: "one answer that stays away takes a replica out",
				before: "const FAILURES_TO_BE_DOWN = 2;",
				after: "const FAILURES_TO_BE_DOWN = 1;",
			},
			{
				breaks: "a refused connection is a hiccup",
				before: 'const down = verdict === "refused" || watch.failuresInRow',
				after: "const down = watch.failuresInRow",
			},
			{
				breaks: "a server that wants a key for its health, or has none, is ill",
				before: "return response.status < 500 || response.status === 501",
				after: "return response.status < 400",
			},
			{
				breaks: "who answers requests is asked for his health as well",
				before: 'answers(replica) ? "up" : await',
				after: "await",
			},
		],
	},
	{
		file: "upstream/replicas/output-worth.ts",
		killers: ["upstream/output-worth"],
		mutants: [
			{
				breaks: "one stream says what output is worth",
				before: "const STREAMS_KNOWN_MIN = 3;",
				after: "const STREAMS_KNOWN_MIN = 1;",
			},
			{
				breaks: "one server that lies once says what output is worth",
				before: "const tokens = isKnown() ? Math",
				after: "const tokens = amount < 0 ? Math",
			},
			{
				breaks: "more tokens than bytes are believed",
				before: "Math.min(told === events + 1 ? events : told, bytes)",
				after: "told === events + 1 ? events : told",
			},
		],
	},
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
				breaks: "a request whose client has left is sent anew",
				before: "if (!replayable(error) || signal.aborted) throw error;",
				after: "if (!replayable(error)) throw error;",
				equivalent: "The next call looks whether its client is there before anything is sent, and is aborted.",
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
			{
				breaks: "an error of the upstream stands in the log with its own words",
				before: "...(ours ? { detail: failure.private } : {}),",
				after: "detail: failure.private,",
				killers: ["gateway/canary"],
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
