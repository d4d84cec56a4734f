import { Fault } from "../base/fault.ts";
import { reachableAddressOf } from "../planes/listening-address.ts";
import type { Command } from "./command.ts";

const DEADLINE_MS = 5_000;

/** For container health checks, so that the image needs no other program. */
export const healthCommand: Command = {
	name: "health",
	summary: "ask the server on this machine whether it lives; exit code 1 if not",
	arguments: [],
	options: { ready: { type: "boolean", help: "whether it takes requests now" } },
	details:
		"Without --ready a server that lives and has lost its database counts as well: starting it again would not help.",
	async run({ config }, input) {
		const path = input.flag("ready") ? "/readyz" : "/livez";
		const { host, port } = config();
		const url = `${reachableAddressOf(host, port)}${path}`;
		const response = await ask(url);
		const text = (await response.text()).trim();
		return {
			json: { ok: response.ok, status: response.status, answer: text },
			text: `${path}: ${response.status} ${text}`,
			exitCode: response.ok ? 0 : 1,
		};
	},
};

async function ask(url: string): Promise<Response> {
	try {
		return await fetch(url, { signal: AbortSignal.timeout(DEADLINE_MS), redirect: "manual", proxy: "" });
	} catch (cause) {
		throw new Fault("service_unavailable", `No server answers at ${url}.`, { cause });
	}
}
