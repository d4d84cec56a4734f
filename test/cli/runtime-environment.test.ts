import { expect, test } from "bun:test";
import { runtimeEnvironment } from "../../src/cli/runtime-environment.ts";

test("a gateway restarts itself once to set Bun's variables, unless they are set", () => {
	const env = runtimeEnvironment({ A: "1", B: undefined, C: "", MIMALLOC_PURGE_DELAY: "" });
	const all = {
		BUN_CONFIG_MAX_HTTP_REQUESTS: "65535",
		MIMALLOC_PURGE_DELAY: "5000",
		MIMALLOC_PURGE_HOLES_MIN_INTERVAL: "5000",
	};
	expect(env).toEqual({ A: "1", C: "", ...all });
	expect(runtimeEnvironment(env ?? {})).toBeNull();
	const own = { BUN_CONFIG_MAX_HTTP_REQUESTS: "512", MIMALLOC_PURGE_DELAY: "10" };
	expect(runtimeEnvironment(own)).toEqual({ ...all, ...own });
});
