# What `cmake --install` puts where.
if(TARGET gc)
  install(TARGETS gc jackdaw jackdaw_static)
endif()
