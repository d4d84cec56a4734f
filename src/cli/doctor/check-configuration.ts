import { type Config, ConfigError } from "../../config.ts";
import { type Finding, findingsOf } from "./finding.ts";

/** The configuration, or what is wrong with it. */
export function checkConfiguration(load: () => Config): { config: Config | undefined; findings: readonly Finding[] } {
	const found = findingsOf("configuration");
	try {
		const config = load();
		describe(config, found);
		return { config, findings: found.list };
	} catch (error) {
		if (!(error instanceof ConfigError)) throw error;
		for (const problem of error.problems)
			found.broken(problem, "Set it right; `tollgate help` says what each variable takes.");
		found.note("the rest can be looked at once this is right");
		return { config: undefined, findings: found.list };
	}
}

function describe(config: Config, found: ReturnType<typeof findingsOf>): void {
	const mode = config.production ? "production" : config.demo ? "the demo" : "development (NODE_ENV is not production)";
	const workers = config.workers === 1 ? "1 worker" : `${config.workers} workers`;
	found.ok(`${mode}, role ${config.role}, ${workers}, journal mode ${config.journal}`);
	for (const warning of config.warnings) found.warn(warning, "Change it, or go on if this is as you want it.");
	// A gateway writes no mail and signs nobody in.
	if (!config.production || config.role === "gateway") return;
	if (config.publicUrl === null)
		found.warn(
			"PUBLIC_URL is not set: links in mails and sign-in go by the address that the service listens on",
			"Set PUBLIC_URL to the address that people use.",
		);
	else if (!config.publicUrl.startsWith("https://"))
		found.warn(
			"PUBLIC_URL is no https address: sessions and keys travel in clear",
			"Put TLS in front of the service, and set PUBLIC_URL to its address.",
		);
}
