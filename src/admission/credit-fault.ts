import { Fault } from "../base/fault.ts";
import type { Text } from "../base/translate.ts";
import type { CreditShortage } from "../money/credit-shortage.ts";
import { formatUsd } from "../money/nano-usd.ts";

const LACKING = {
	insufficient_quota: "The credit of this account does not cover the request.",
	project_cap_exceeded: "The spending cap of this API key's project does not cover the request.",
	key_cap_exceeded: "The spending cap of this API key does not cover the request.",
} as const;

/** Fault for a 402 answer, with the amounts that explain it. */
export class CreditFault extends Fault {
	readonly shortage: CreditShortage;

	/** `renewsAtMs`: start of the cap's next period; null if the cap does not renew. */
	constructor(code: keyof typeof LACKING, shortage: CreditShortage, renewsAtMs: number | null = null) {
		const { requiredNanoUsd, availableNanoUsd, affordableMaxTokens: count } = shortage;
		const [required, available] = [formatUsd(requiredNanoUsd), formatUsd(availableNanoUsd)];
		const texts: Text[] = [
			{ id: LACKING[code] },
			{
				id: "The request may cost up to USD {required}, available is USD {available}.",
				values: { required, available },
			},
		];
		if (count !== null) texts.push({ id: "A request with `max_tokens` of {count} would fit.", values: { count } });
		if (renewsAtMs !== null)
			texts.push({ id: "The cap renews at {moment}.", values: { moment: new Date(renewsAtMs).toISOString() } });
		super(code, texts);
		this.shortage = shortage;
	}
}
