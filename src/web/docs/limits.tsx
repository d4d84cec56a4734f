import { Facts } from "../parts/page.tsx";
import { Link } from "../router.tsx";
import { useSession } from "../session.tsx";
import { showUsd } from "../shown-money.ts";
import { rich, t } from "../texts.tsx";

export function LimitsSection() {
	const { config } = useSession();
	return (
		<>
			<h2>{t("Credit")}</h2>
			<Facts
				items={[
					[t("First top-up"), t("At least {topUpMin}", { topUpMin: showUsd(config.topUpMinNanoUsd) })],
					[
						t("Each later top-up"),
						t("At least {topUpMin}, at most {topUpMax}", {
							topUpMin: showUsd(config.topUpMinNanoUsd),
							topUpMax: showUsd(config.topUpMaxNanoUsd),
						}),
					],
					[
						t("Automatic top-ups"),
						t(
							"By a saved card, set on the credit page: below an amount buy another, at most so much a calendar month. One payment for each time that the balance falls below; credit is there when it has cleared. A declined card stops them, and a payment that the bank wants confirmed waits for you; both are told by mail",
						),
					],
					[t("Remaining balance"), t("Stays usable as long as it covers the request, however small it is")],
				]}
			/>
			<p>
				{rich(
					"A request is admitted if the most that it can cost is available. That amount is held while it runs; when it ends, the actual cost is charged and the rest is free again. Lower {code} to hold less.",
					{ code: <code>max_tokens</code> },
				)}
			</p>
			<h2>{t("Keys")}</h2>
			<Facts
				items={[
					[
						t("Spending cap"),
						t(
							"Optional, in USD, for the key's lifetime or each day, week or month. Counts what was charged and what running requests hold",
						),
					],
					[t("Models"), t("Optional list; empty means all available models")],
					[t("Requests a minute, requests at a time"), t("Optional, per key; beyond them 429 with retry-after")],
					[t("Rotation"), t("Make a replacement, change the application over, revoke the old key")],
					[t("Revocation"), t("New requests are refused at once. Requests already admitted finish and are charged")],
				]}
			/>
			<h2>{t("Requests")}</h2>
			<p>
				{rich(
					"Context and output limits are those of each <link>model</link>. The body of a request may have 32 MB, unless the operator of the service has set another limit.",
					{ link: (inner) => <Link to="/models">{inner}</Link> },
				)}
			</p>
			<h2>{t("Availability")}</h2>
			<p>
				{rich(
					"Which models and services are connected stands in {code} and on the <link>status page</link>. A listed rate does not say that a model is connected.",
					{ code: <code>GET /v1/models</code>, link: (inner) => <a href="/status">{inner}</a> },
				)}
			</p>
		</>
	);
}
