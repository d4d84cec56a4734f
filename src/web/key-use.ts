import type { KeyView } from "./views.ts";

type Used = Pick<KeyView, "state" | "readsOnly" | "projectState">;

/** Of an archived project: no request of the key is admitted, whatever its state. */
export const isArchived = ({ state, projectState }: Pick<Used, "state" | "projectState">): boolean =>
	state === "active" && projectState === "archived";

/** Whether the key can call models. */
export const canAsk = (key: Used): boolean => key.state === "active" && !isArchived(key) && !key.readsOnly;
