import { type Clock, systemClock } from "../../src/base/clock.ts";
import { DEFAULT_LIMITS, type ServiceLimits } from "../../src/catalog/service-limits.ts";
import { createUnreadAnswers, type UnreadAnswers } from "../../src/gateway/serve/unread-answers.ts";
import { createAnswerMemory } from "../../src/upstream/call/answer-memory.ts";

type Bounds = Pick<ServiceLimits, "answerMemoryBytesMax" | "answerMemoryAccountBytesMax">;

/** Creates the limit of unread answers as in a gateway, without calls to a model server. */
export function unreadAnswersAlone(bounds: Bounds = DEFAULT_LIMITS, clock: Clock = systemClock): UnreadAnswers {
	const limits = () => bounds;
	return createUnreadAnswers({ answers: createAnswerMemory({ clock }, { limits }), limits });
}
