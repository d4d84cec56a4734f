import { Facts } from "../parts/page.tsx";
import { Link } from "../router.tsx";
import { useSession } from "../session.tsx";
import { showUsd } from "../shown-money.ts";

export function LimitsSection() {
	const { config } = useSession();
	return (
		<>
			<h2>Credit</h2>
			<Facts
				items={[
					["First top-up", `At least ${showUsd(config.topUpMinNanoUsd)}`],
					[
						"Each later top-up",
						`At least ${showUsd(config.topUpMinNanoUsd)}, at most ${showUsd(config.topUpMaxNanoUsd)}`,
					],
					[
						"Automatic top-ups",
						"By a saved card, set on the credit page: below an amount buy another, at most so much a calendar month. One payment for each time that the balance falls below; credit is there when it has cleared. A declined card stops them, and a payment that the bank wants confirmed waits for you; both are told by mail",
					],
					["Remaining balance", "Stays usable as long as it covers the request, however small it is"],
				]}
			/>
			<p>
				A request is admitted if the most that it can cost is available. That amount is held while it runs; when it
				ends, the actual cost is charged and the rest is free again. Lower <code>max_tokens</code> to hold less.
			</p>
			<h2>Keys</h2>
			<Facts
				items={[
					[
						"Spending cap",
						"Optional, in USD, for the key's lifetime or each day, week or month. Counts what was charged and what running requests hold",
					],
					["Models", "Optional list; empty means all available models"],
					["Requests a minute, requests at a time", "Optional, per key; beyond them 429 with retry-after"],
					["Rotation", "Make a replacement, change the application over, revoke the old key"],
					["Revocation", "New requests are refused at once. Requests already admitted finish and are charged"],
				]}
			/>
			<h2>Requests</h2>
			<p>
				Context and output limits are those of each <Link to="/models">model</Link>. The body of a request may have 32
				MB, unless the operator of the service has set another limit.
			</p>
			<h2>Availability</h2>
			<p>
				Which models and services are connected stands in <code>GET /v1/models</code> and on the{" "}
				<a href="/status">status page</a>. A listed rate does not say that a model is connected.
			</p>
		</>
	);
}
