import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import type { UpstreamSpec } from "../../src/catalog/model.ts";
import type { ServiceLimits } from "../../src/catalog/service-limits.ts";
import { createUpstreams } from "../../src/upstream/upstreams.ts";
import { untilEnd } from "./at-end.ts";
import { askChat, chatCall, collect, limitsWith, modelOver, openChat, snapshotOf } from "./upstream-catalog.ts";
import type { Reply } from "./upstream-reply.ts";
import { reply, withUpstream } from "./upstream-server.ts";
import { waitFor } from "./wait.ts";

/** Upstream specification; tests with their own server replace its URL. */
export const UPSTREAM_SPEC: UpstreamSpec = {
	url: "http://127.0.0.1:9/v1",
	apiKey: null,
	model: "m",
	dialect: "openai",
	maxConcurrency: 4,
	keepAlive: true,
};

export const until = (condition: () => boolean) => waitFor(condition, "the condition");

/** Creates upstreams with one model on these servers, stopped at the end of the file. */
export function upstreamsOver(
	specs: readonly UpstreamSpec[],
	more: Partial<Parameters<typeof createUpstreams>[0]> & { limits?: Partial<ServiceLimits> } = {},
) {
	const { limits = {}, ...deps } = more;
	const upstreams = untilEnd(
		createUpstreams({ clock: systemClock, log: silentLog, ...deps }, { limits: () => limitsWith(limits) }),
	);
	const model = modelOver(specs);
	upstreams.sync(snapshotOf(model));
	return { upstreams, model };
}

export function openUpstreams(
	count: number,
	limits: Partial<ServiceLimits> = {},
	specs: readonly Partial<UpstreamSpec>[] = [],
) {
	const servers = Array.from({ length: count }, () => withUpstream());
	const { upstreams, model } = upstreamsOver(
		servers.map((server, index) => server.spec(specs[index])),
		{ limits },
	);
	const requests = () => servers.reduce((sum, server) => sum + server.requests.length, 0);
	/** Answers the first request at any server with `bad`, and all others with an echo. */
	const firstFails = (bad: () => Reply) => {
		let failed = false;
		for (const server of servers) {
			server.always(() => {
				if (failed) return reply().text("fine");
				failed = true;
				return bad();
			});
		}
	};
	/** Reads a streamed chat to its end. */
	const read = (more?: Parameters<typeof chatCall>[0]) => collect(openChat(upstreams, model, chatCall(more)));
	const ask = (more?: Parameters<typeof chatCall>[0]) => askChat(upstreams, model, chatCall(more));
	return { servers, upstreams, model, requests, firstFails, read, ask };
}
