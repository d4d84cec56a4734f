import { Fault } from "../base/fault.ts";
import type { CreditShortage } from "../money/credit-shortage.ts";
import { formatUsd } from "../money/nano-usd.ts";

const LACKING = {
	insufficient_quota: "The credit of this account does not cover the request.",
	project_cap_exceeded: "The spending cap of this API key's project does not cover the request.",
	key_cap_exceeded: "The spending cap of this API key does not cover the request.",
} as const;

/** A 402 for want of credit. It carries its amounts, and whoever writes them down or says them takes them from here. */
export class CreditFault extends Fault {
	readonly shortage: CreditShortage;

	/** `renewsAtMs`: when the cap begins anew; null if it does not. */
	constructor(code: keyof typeof LACKING, shortage: CreditShortage, renewsAtMs: number | null = null) {
		const renewal = renewsAtMs === null ? "" : ` The cap begins anew at ${new Date(renewsAtMs).toISOString()}.`;
		super(code, `${LACKING[code]} ${needOf(shortage)}${renewal}`);
		this.shortage = shortage;
	}
}

function needOf({ requiredNanoUsd, availableNanoUsd, affordableMaxTokens }: CreditShortage): string {
	const hint =
		affordableMaxTokens === null ? "" : ` A request with \`max_tokens\` of ${affordableMaxTokens} would fit.`;
	return `The request may cost up to USD ${formatUsd(requiredNanoUsd)}, available is USD ${formatUsd(availableNanoUsd)}.${hint}`;
}
