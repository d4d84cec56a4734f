/** The first run: `serve` with neither a database nor a catalogue. Nothing here runs once one of them is given. */
import type { App } from "../app.ts";
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { ModelSpec } from "../catalog/model.ts";
import { createDigest } from "../keys/digest.ts";
import { accountBalance } from "../ledger/balance.ts";
import { formatUsd } from "../money/nano-usd.ts";
import { type BannerFacts, formatBanner, shellQuoted } from "./banner.ts";
import { DEMO_EMAIL, ensureDemoAccount } from "./demo-account.ts";
import type { DemoUpstream } from "./demo-upstream.ts";
import { startDemoUpstream } from "./demo-upstream.ts";
import type { FoundServer } from "./discover.ts";
import { discover, USUAL_PORTS } from "./discover.ts";
import { DEMO_RATES } from "./found-model.ts";

export interface DemoDeps {
	readonly log: Log;
	readonly clock?: Clock;
	/** Takes the banner. */
	readonly out: (text: string) => void;
	/** True if `out` is a terminal. */
	readonly colour: boolean;
}

export interface DemoOptions {
	/** Ports to look for model servers on; the service's own is left out. */
	readonly ports?: readonly number[];
	/** How this program is called from a shell. */
	readonly command?: string;
}

/** What runs beside the app; stop it after the app. */
export interface Demo {
	stop(): Promise<void>;
}

/** A server that is busy loading a model may take a while; the terminal waits for it. */
const DISCOVERY_TIMEOUT_MS = 1500;

/** Connects models, makes the account, prints the banner. `app.config.demo` must hold. */
export async function startDemo(
	app: Pick<App, "url" | "config" | "secrets" | "db" | "fixedCatalog">,
	deps: DemoDeps,
	options: DemoOptions = {},
): Promise<Demo> {
	const { config, fixedCatalog } = app;
	assert(config.demo && fixedCatalog !== undefined, "the demo runs only where neither a database nor a file was given");
	const clock = deps.clock ?? systemClock;
	const url = reachableUrl(app.url);
	const ports = (options.ports ?? USUAL_PORTS).filter((port) => port !== Number(new URL(url).port));
	const found = await discover({ clock, log: deps.log }, { ports, timeoutMs: DISCOVERY_TIMEOUT_MS });
	const standIn = found.models.some(({ kind }) => kind === "chat") ? undefined : startDemoUpstream();
	try {
		const models = [...found.models, ...(standIn === undefined ? [] : [standIn.model])];
		await fixedCatalog.setModels(models);
		const account = await ensureDemoAccount(
			{ statements: app.db.statements, digest: createDigest(app.secrets.keyPepper), serviceName: config.serviceName },
			{ nowMs: clock.wallMs(), newPepper: app.secrets.made.includes("KEY_PEPPER") },
		);
		const balance = await accountBalance(app.db.statements, account.id);
		const facts: BannerFacts = {
			url,
			models: describeModels(models, found.servers, standIn),
			exampleModel: models.find(({ kind }) => kind === "chat")?.id ?? "",
			portsAsked: found.servers.length === 0 ? ports : [],
			accountId: account.id,
			email: DEMO_EMAIL,
			availableUsd: formatUsd(balance.available),
			rates: DEMO_RATES,
			secret: account.secret,
			shownKey: account.key,
			command: options.command ?? "tollgate",
		};
		deps.out(formatBanner(facts, { colour: deps.colour }));
	} catch (error) {
		await standIn?.stop();
		throw error;
	}
	return { stop: async () => standIn?.stop() };
}

/**
 * How a shell starts a command beside this server. From source with the runtime that `npx` fetches, because nothing
 * else may be installed; with DATA_DIR if it is not where a command would look by itself.
 */
export function commandFor(config: Pick<App["config"], "dataDir" | "env">, program: string): string {
	return config.env.DATA_DIR ? `DATA_DIR=${shellQuoted(config.dataDir)} ${program}` : program;
}

/** An address to listen on is not always one to connect to. */
function reachableUrl(url: string): string {
	return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}

function describeModels(models: readonly ModelSpec[], servers: readonly FoundServer[], standIn?: DemoUpstream) {
	const productOf = (url: string) => {
		if (url === standIn?.url) return "built in";
		const server = servers.find(({ origin }) => url.startsWith(`${origin}/`));
		return server === undefined ? url : `${server.product}, ${server.origin}`;
	};
	return models.map(({ id, upstreams }) => ({ id, origin: upstreams.map(({ url }) => productOf(url)).join("; ") }));
}
