// Around fork() (task.req.fork). The forking thread may be told by several.
#pragma once

namespace jd::task {

void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

}  // namespace jd::task
