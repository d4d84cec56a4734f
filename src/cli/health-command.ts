import { Fault } from "../base/fault.ts";
import { reachableAddressOf } from "../planes/listening-address.ts";
import type { CommandRuns } from "./command.ts";

const DEADLINE_MS = 5_000;

export const healthCommand: CommandRuns = {
	async health({ config }, input) {
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
