import { SPEED_REQUESTS_MIN } from "../../console/views.ts";
import { formatCount, formatDuration } from "../format.ts";
import { t } from "../texts.tsx";
import type { ModelView } from "../views.ts";

/** Medians of the last day, as the service measured them, one below the other. */
export function ModelSpeed({ speed }: Pick<ModelView, "speed">) {
	if (speed === null) return <span className="num">–</span>;
	const { firstTokenMs, tokensPerSecond } = speed;
	const first = t("first after {time}", { time: formatDuration(firstTokenMs) });
	if (tokensPerSecond === null) return <span className="num">{first}</span>;
	return (
		<>
			<span className="num">{t("{count} tokens/s", { count: formatCount(tokensPerSecond) })}</span>
			<div className="small dim num">{first}</div>
		</>
	);
}

/** How speeds in a list were measured; nothing where too little was asked of every model. */
export function SpeedNote({ models }: { models: readonly ModelView[] | undefined }) {
	if (!models?.some(({ speed }) => speed !== null)) return null;
	return (
		<p className="small dim panel-note">
			{t(
				"Speed is what this service measured itself: medians of the last day's streamed answers of all customers, from a request's arrival to its first token, and tokens a second behind that. Models with fewer than {least} such answers show none.",
				{ least: formatCount(SPEED_REQUESTS_MIN) },
			)}
		</p>
	);
}
