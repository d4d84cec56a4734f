/** The whole road of a request, from the header to the last byte, between an upstream and a ledger that are memory alone. */

import { createAdmission } from "../../src/admission/admission.ts";
import { createOpenRequests } from "../../src/admission/open-requests.ts";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { DEFAULT_LIMITS } from "../../src/catalog/service-limits.ts";
import { createBodyMemory } from "../../src/gateway/body/body-memory.ts";
import { createBodyReads } from "../../src/gateway/body/body-reads.ts";
import { chat } from "../../src/gateway/chat/chat.ts";
import { createSilentConnections } from "../../src/gateway/connection.ts";
import type { ServeDeps } from "../../src/gateway/serve/context.ts";
import { createModelSpeeds } from "../../src/gateway/serve/model-speeds.ts";
import { createOpenStreams } from "../../src/gateway/serve/open-streams.ts";
import { serve } from "../../src/gateway/serve/serve.ts";
import { createKeyLimits } from "../../src/limits/key-limits.ts";
import type { ChatChunk } from "../../src/upstream/chat/chat-answer.ts";
import { createChatReader } from "../../src/upstream/chat/chat-reader.ts";
import { readChatReply } from "../../src/upstream/chat/chat-whole.ts";
import { DIALECTS } from "../../src/upstream/dialects.ts";
import type { Upstreams } from "../../src/upstream/upstreams.ts";
import { inSteps } from "../support/in-steps.ts";
import { plainKey } from "../support/plain-key.ts";
import { unreadAnswersAlone } from "../support/unread-answers.ts";
import { snapshotOf } from "../support/upstream-catalog.ts";
import { ledgerOver, nullJournal } from "./bench-ledger.ts";
import type { Fixtures } from "./fixtures.ts";
import type { Step } from "./step.ts";

export async function roadSteps(fixtures: Fixtures): Promise<Step[]> {
	const { model } = fixtures;
	const key = plainKey();
	const { ledger, writer } = await ledgerOver(nullJournal, { account: key.account.id, key: key.id });
	const snapshot = snapshotOf(model);
	const deps: ServeDeps = {
		authenticate: () => key,
		catalog: { current: () => snapshot },
		admission: createAdmission({
			ledger: () => ledger,
			closedReason: () => undefined,
			keyLimits: createKeyLimits({ clock: systemClock }),
			openRequests: createOpenRequests({ limits: () => DEFAULT_LIMITS }),
			clock: systemClock,
			onSettled() {},
		}),
		bodyMemory: createBodyMemory({ limits: () => DEFAULT_LIMITS }),
		bodyReads: createBodyReads(systemClock),
		unreadAnswers: unreadAnswersAlone(),
		upstreams: upstreamsOf(fixtures),
		openStreams: createOpenStreams({ clock: systemClock }),
		silentConnections: createSilentConnections(systemClock),
		speeds: createModelSpeeds({ clock: systemClock }),
		clock: systemClock,
		log: silentLog,
		stats: { refuse() {}, gap() {} },
		refusals: { record() {} },
		limits: () => DEFAULT_LIMITS,
	};

	/** One request, made, served and read to its end. */
	const road = (stream: boolean) => {
		const body = JSON.stringify({ ...JSON.parse(fixtures.bodies.small), model: model.id, stream });
		const headers = { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) };
		return async () => {
			const request = new Request("http://bench.example/", { method: "POST", headers, body });
			const response = await serve(deps, chat, { request, address: "", setIdleTimeout() {} });
			if (response.status !== 200 || response.body === null) throw new Error(await response.text());
			const reader = response.body.getReader();
			while (!(await reader.read()).done);
			return response;
		};
	};
	const after = () => writer.drain();
	return [
		{ name: "road: a chat in one piece", per: 1, run: road(false), after },
		{ name: "road: a streamed chat", per: 1, run: road(true), after },
	];
}

/** Answers at once, with the answers of the fixtures already read. */
function upstreamsOf({ answer, payloads }: Fixtures): Upstreams {
	const reply = readChatReply(JSON.parse(answer), DIALECTS.openai);
	const reader = createChatReader(DIALECTS.openai);
	const chunks: readonly ChatChunk[][] = payloads
		.map((payload) => reader.accept(payload))
		.filter((chunk) => chunk !== undefined)
		.map((chunk) => [chunk]);
	const usage = reader.usage();
	return {
		call: async () => ({ reply, replica: "bench#0" }),
		open() {
			let at = 0;
			const next = async () => chunks[at++] ?? null;
			return {
				next,
				...inSteps(next),
				usage: () => usage,
				usageIsFinal: () => true,
				tokensLikely: () => undefined,
				replica: () => "bench#0",
				close() {},
			};
		},
	} as unknown as Upstreams;
}
