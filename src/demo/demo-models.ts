import { assert } from "../base/assert.ts";
import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { FixedCatalog } from "../catalog/catalog.ts";
import type { CatalogSnapshot, ModelSpec } from "../catalog/model.ts";
import { type DemoUpstream, startDemoUpstream } from "./demo-upstream.ts";
import type { WeekModel } from "./demo-week.ts";
import { discoverModelServers, type FoundServer, USUAL_PORTS } from "./discover.ts";

/** Models of the first run, for the banner. JSON-compatible, because a gateway sends it to the parent process. */
export interface DemoDescription {
	readonly models: readonly { readonly id: string; readonly origin: string }[];
	readonly exampleModel: string;
	/** Ports that were tried without success; empty if a server was found. */
	readonly portsAsked: readonly number[];
	readonly chatModels: readonly WeekModel[];
}

/** Deadline of a server's answer. A server that is loading a model is slow, but the user at the terminal waits. */
const DISCOVERY_TIMEOUT_MS = 1500;

export type DemoModels = Awaited<ReturnType<typeof connectDemoModels>>;

/** Connects this machine's model servers, or a built-in one if none serves chats. Stop the result after the gateway. */
export async function connectDemoModels(
	deps: { log: Log; fixedCatalog: FixedCatalog | undefined },
	options: { ownPort: number; ports?: readonly number[] },
) {
	const { fixedCatalog } = deps;
	assert(fixedCatalog !== undefined, "the demo runs only where neither a database nor a file was given");
	const ports = (options.ports ?? USUAL_PORTS).filter((port) => port !== options.ownPort);
	const found = await discoverModelServers(
		{ clock: systemClock, log: deps.log },
		{ ports, timeoutMs: DISCOVERY_TIMEOUT_MS },
	);
	const standIn = found.models.some(({ kind }) => kind === "chat") ? undefined : startDemoUpstream();
	try {
		const models = [...found.models, ...(standIn === undefined ? [] : [standIn.model])];
		await fixedCatalog.setModels(models);
		return {
			description: {
				models: describeModels(models, found.servers, standIn),
				exampleModel: models.find(({ kind }) => kind === "chat")?.id ?? "",
				portsAsked: found.servers.length === 0 ? ports : [],
				chatModels: chatModels(fixedCatalog.current()),
			} satisfies DemoDescription as DemoDescription,
			stop: async () => standIn?.stop(),
		};
	} catch (error) {
		await standIn?.stop();
		throw error;
	}
}

function chatModels(catalog: CatalogSnapshot): WeekModel[] {
	const chat = [...catalog.models.values()].filter(({ kind }) => kind === "chat");
	return chat.map(({ id, contextLength, maxOutputTokens, rateCard }) => {
		return { id, contextLength, maxOutputTokens, rateCard };
	});
}

function describeModels(models: readonly ModelSpec[], servers: readonly FoundServer[], standIn?: DemoUpstream) {
	const productOf = (url: string) => {
		if (url === standIn?.url) return "built in";
		const server = servers.find(({ origin }) => url.startsWith(`${origin}/`));
		return server === undefined ? url : `${server.product}, ${server.origin}`;
	};
	return models.map(({ id, upstreams }) => ({ id, origin: upstreams.map(({ url }) => productOf(url)).join("; ") }));
}
