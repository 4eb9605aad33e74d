/** What came of a file of cases. */
export type CaseReport = {
  readonly passed: number;
  readonly failed: readonly { readonly id: string; readonly message: string }[];
};
